"""Variables that a train step gives in some cases only, and that are read behind it."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .printed import printed

TRAINER = """\
import torch
import torch.nn as nn

class Trainer:
    def __init__(self, use_aux):
        self.use_aux = use_aux
        self.net = nn.Linear(3, 2)
        for p in self.net.parameters():
            nn.init.constant_(p, 0.1)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def step(self, x, y):
        self.opt.zero_grad()
        out = self.net(x)
        loss = ((out[:, :1] - y) ** 2).mean()
        if self.use_aux:
            aux = out[:, 1].abs().mean()
            loss = loss + 0.1 * aux
        loss.backward()
        self.opt.step()
        logs = {"loss": round(loss.item(), 4)}
        if self.use_aux:
            logs["aux"] = round(aux.item(), 4)
        return logs

x, y = torch.ones(8, 3), torch.zeros(8, 1)
for flag in (True, False):
    trainer = Trainer(flag)
    for _ in range(2):
        print(trainer.step(x, y))
"""
LOOP = """\
import torch
import torch.nn as nn

net = nn.Linear(3, 1)
for p in net.parameters():
    nn.init.constant_(p, 0.1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.ones(8, 3), torch.zeros(8, 1)
use_reg = {use_reg}
{front}
for epoch in range(4):
    opt.zero_grad()
    {start}
    out = net(x)
    loss = ((out - y) ** 2).mean()
    if {test}:
        reg = net.weight.abs().sum()
        loss = loss + 0.1 * reg
    loss.backward()
    opt.step()
    {between}
    {read}
"""
GUARDED = 'print(round(reg.item(), 4)) if use_reg else print("none")'
PLAIN = "print(round(reg.item(), 4))"


def text(**parts: object) -> str:
    given = {"use_reg": True, "front": "", "start": "", "test": "use_reg", "between": "", "read": GUARDED}
    return LOOP.format(**given | parts)


def test_a_value_under_a_condition_is_none_in_the_step_without_it() -> None:
    done = convert(TRAINER)
    assert not done.gaps
    assert "aux = None" in done.code
    assert printed(done.code) == printed(TRAINER)


@pytest.mark.parametrize("use_reg", [True, False])
def test_where_only_the_same_condition_reads_it_no_round_before_is_asked(use_reg: bool) -> None:
    source = text(use_reg=use_reg)
    done = convert(source)
    assert not done.gaps
    assert "reg = None" in done.code
    assert printed(done.code) == printed(source)


@pytest.mark.parametrize(
    "parts",
    [
        {"front": "reg = torch.tensor(5.0)", "test": "epoch % 2 == 1"},
        {"start": "reg = torch.tensor(5.0)", "test": "epoch % 2 == 1"},
        {"front": "reg = torch.tensor(5.0)", "test": "use_reg and epoch < 2"},
    ],
)
def test_a_value_from_before_is_kept(parts: dict[str, str]) -> None:
    source = text(read=PLAIN, **parts)
    done = convert(source)
    assert not done.gaps
    assert "reg = None" not in done.code
    assert printed(done.code) == printed(source)


@pytest.mark.parametrize(
    "parts",
    [
        {"test": "epoch % 2 == 0", "read": PLAIN},
        {"between": "use_reg = not use_reg", "read": GUARDED},
        {"read": PLAIN},
    ],
)
def test_what_may_be_there_from_an_earlier_round_alone_is_a_gap(parts: dict[str, str]) -> None:
    assert convert(text(**parts)).gaps


def test_a_loop_that_computes_the_loss_is_taken_to_run() -> None:
    source = """\
import torch
import torch.nn as nn

cell = nn.RNNCell(2, 3)
for p in cell.parameters():
    nn.init.constant_(p, 0.1)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
xs = torch.linspace(-1, 1, 24).reshape(4, 3, 2)
for epoch in range(3):
    hidden = torch.zeros(3, 3)
    opt.zero_grad()
    for x in xs:
        hidden = cell(x, hidden)
        last = hidden.mean()
    loss = (hidden - 1).pow(2).mean()
    loss.backward()
    opt.step()
    print(round(loss.item(), 4), round(last.item(), 4))
"""
    done = convert(source)
    assert not done.gaps
    assert "last = None" not in done.code
    assert printed(done.code) == printed(source)


NAMED = """\
import torch
from torch import nn

def fit(x, update):
    g, d = nn.Linear(3, 1), nn.Linear(3, 1)
    for p in [*g.parameters(), *d.parameters()]:
        nn.init.constant_(p, 0.1)
    opt_g = torch.optim.SGD(g.parameters(), lr=0.1)
    opt_d = torch.optim.SGD(d.parameters(), lr=0.1)
    total = 0.0
    for step in range(3):
        loss = (g(x) - 1).pow(2).mean()
        opt_g.zero_grad()
        loss.backward()
        opt_g.step()
        other = (d(x) + 1).pow(2).mean()
        opt_d.zero_grad()
        other.backward()
        opt_d.step()
        total += loss.item() + other.item()
        print(step, update, round(total, 4))

fit(torch.ones(4, 3), "x")
"""


def test_a_step_that_is_bound_in_front_of_a_loop_has_no_name_of_the_function() -> None:
    done = convert(NAMED)
    assert not done.gaps
    assert done.code.count("nnx.jit_partial(") == 2
    assert printed(done.code) == printed(NAMED)
