"""Code between a backward pass and the step that reaches the optimizer by functions that it calls."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """\
import torch
from torch import nn
from warmups import Warmup

net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
seen = []


class Schedule:
    def __init__(self, optimizer):
        self.optimizer, self.count = optimizer, 0

    def adjust(self):
        self.count += 1
        self.set(0.1 / self.count)

    def set(self, rate):
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def told(self, number):
        self.count += number


def adjust():
    opt.param_groups[0]["lr"] *= 0.5


def largest():
    return net.weight.abs().max().item()


def told(number):
    seen.append(number)


schedule = Schedule(opt)
warmup = Warmup(opt)
for x, y in [(torch.randn(4, 2), torch.randn(4, 1))] * 3:
    opt.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    {between}
    opt.step()
"""


@pytest.mark.parametrize("between", ["schedule.adjust()", "adjust()", "warmup.dampen()", "seen.append(largest())"])
def test_what_changes_or_reads_the_step_stays_in_front_of_it(between: str) -> None:
    """A rate that is set behind the update is that of the next step; parameters are read that have moved."""
    done = convert(TEXT.format(between=between))
    assert not [gap for gap in done.gaps if gap.code == "training-loop"], done.gaps
    loop = done.code[done.code.index("for x, y in") :]
    assert loop.index(" = gradients(net, x, y)") < loop.index(between) < loop.index("apply_gradients(net, opt, grads)")


@pytest.mark.parametrize("between", ["told(1)", "schedule.told(2)", "seen.append(loss.item())"])
def test_what_has_nothing_to_do_with_it_leaves_the_step_whole(between: str) -> None:
    done = convert(TEXT.format(between=between))
    assert not [gap for gap in done.gaps if gap.code == "training-loop"], done.gaps
    assert "train_step(net, opt, x, y)" in done.code and "apply_gradients" not in done.code


WRAPPED = """\
import torch
from torch import nn


class NoamOpt:
    "Optim wrapper that implements rate."

    def __init__(self, factor, optimizer):
        self.optimizer, self.factor, self._step = optimizer, factor, 0

    def step(self):
        "Update parameters and rate"
        self._step += 1
        for p in self.optimizer.param_groups:
            p["lr"] = self.rate()
        self.optimizer.step()

    def rate(self):
        return self.factor / self._step


model = nn.Linear(2, 1)
wrapped = NoamOpt(0.1, torch.optim.Adam(model.parameters(), lr=0))
for x, y in [(torch.randn(4, 2), torch.randn(4, 1))] * 3:
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    wrapped.step()
    wrapped.optimizer.zero_grad()
    print(loss.item())
"""


def test_a_wrapper_with_a_step_of_its_own_is_written_where_it_is_called() -> None:
    done = convert(WRAPPED)
    assert not done.gaps, done.gaps
    loop = done.code[done.code.index("for x, y in") :]
    rate = 'set_hyperparameter(wrapped.optimizer, "learning_rate", wrapped.rate())'
    assert loop.index("wrapped._step += 1") < loop.index(rate) < loop.index("apply_gradients(model, wrapped.optimizer")
    assert "def rate(self):\n" in done.code and "def step(self)" not in done.code


HIDDEN = """\
import torch
from torch import nn

net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
weight, seen = 1.0, []


class Log:
    def __init__(self):
        self.lines = []

    def add(self, line):
        self.lines.append(line)


def grow():
    global weight
    weight = weight * 2


def report():
    seen.append(loss.item())


def twice():
    grow()
    log.add(1)


log = Log()
for x, y in [(torch.randn(4, 2), torch.randn(4, 1))] * 3:
    opt.zero_grad()
    loss = nn.functional.mse_loss(net(x), y) * weight
    {between}
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("between", "waits"), [("grow()", True), ("report()", True), ("twice()", True), ("log.add(2)", False)]
)
def test_what_functions_read_and_change_keeps_its_order(between: str, waits: bool) -> None:
    """``grow()`` changes what the loss was computed with, ``report()`` reads the loss: both wait for the step."""
    done = convert(HIDDEN.format(between=between))
    assert not done.gaps, done.gaps
    loop = done.code[done.code.index("for x, y in") :]
    assert (loop.index("train_step(") < loop.index(between)) is waits


OBJECT = """\
import torch
from torch import nn


class Trainer:
    def __init__(self, net):
        self.net, self.weight = net, 1.0
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)

    def grow(self):
        self.weight = self.weight * 2

    def fit(self, batches):
        for x, y in batches:
            self.opt.zero_grad()
            loss = nn.functional.mse_loss(self.net(x), y) * self.weight
            {between}
            loss.backward()
            self.opt.step()


Trainer(nn.Linear(2, 1)).fit([(torch.randn(4, 2), torch.randn(4, 1))] * 3)
"""


def test_a_callback_that_is_given_the_trainer_runs_in_front_of_the_update() -> None:
    source = OBJECT.replace("{between}", "pass").replace("loss.backward()", "loss.backward()\n            hook(self)")
    done = convert(f"from hooks import hook\n{source}")
    loop = done.code[done.code.index("for x, y in") :]
    assert loop.index(" = gradients(") < loop.index("hook(self)") < loop.index("apply_gradients")


def test_what_a_method_changes_of_its_object_keeps_its_order() -> None:
    done = convert(OBJECT.format(between="self.grow()"))
    assert not done.gaps, done.gaps
    loop = done.code[done.code.index("for x, y in") :]
    assert loop.index("(train_step, ") < loop.index("self.grow()")
