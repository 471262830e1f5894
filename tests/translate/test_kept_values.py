"""What modules read and change outside of themselves: no compiled step keeps the first of it."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = """\
import functools

import torch
import torch.nn as nn
import torch.nn.functional as F

gain, calls = 1.0, []


def act(x):
    return torch.tanh(x) * gain


def counted(x):
    calls.append(1)
    return torch.tanh(x)


class Net(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.function = function

    def forward(self, x):
        return self.function(self.layer(x))


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x):
        return self.layer(x) * gain


x = torch.linspace(-1, 1, 24).reshape(8, 3)
"""

STEPS = """\
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), x[:, :1])
    loss.backward()
    optimizer.step()
    gain = gain * 0.5
"""


def reasons(code: str) -> list[str]:
    return [gap.reason for gap in convert(code).gaps]


@pytest.mark.parametrize(
    "model",
    [
        "Net(act)",
        "Net(lambda t: t * gain)",
        "Net(functools.partial(act))",
        "nn.Sequential(Net(act), nn.Linear(1, 1))",
        "nn.Sequential(Scaled(), nn.Linear(1, 1))",
    ],
)
def test_a_function_that_a_module_is_given_reads_what_changes(model: str) -> None:
    changing = reasons(f"{HEAD}model = {model}\n{STEPS}")
    assert any("gain, which changes while the program runs" in reason for reason in changing)
    assert not reasons(f"{HEAD}model = {model}\n{STEPS}".replace("    gain = gain * 0.5\n", ""))


@pytest.mark.parametrize("model", ["Net(counted)", "nn.Sequential(Net(counted), nn.Linear(1, 1))"])
def test_a_function_that_a_module_is_given_changes_a_list(model: str) -> None:
    code = f"{HEAD}model = {model}\n{STEPS}".replace("    gain = gain * 0.5\n", "")
    assert any("counted changes calls" in reason for reason in reasons(code))
    assert not reasons(code.replace("    calls.append(1)\n", ""))


def test_a_variable_around_a_lambda_changes() -> None:
    lines = f"scale = 2.0\nmodel = Net(lambda t: t * scale)\n{STEPS}".replace("gain = gain", "scale = scale")
    code = f"{HEAD}\n\ndef main():\n" + "".join(f"    {line}\n" for line in lines.splitlines())
    assert any("scale, which changes while the program runs" in reason for reason in reasons(code))
    assert not reasons(code.replace("scale = scale * 0.5", "other = scale * 0.5"))


def test_a_variable_is_set_again_between_two_runs() -> None:
    """A compiled step keeps the first value; set before the first run, it is the only one."""
    steps = STEPS.replace("    gain = gain * 0.5\n", "    ").replace("\n", "\n    ").rstrip()
    code = f"{HEAD}model = Scaled()\n\n\ndef fit():\n    {steps}\n\n\n"
    assert any("gain, which changes" in reason for reason in reasons(f"{code}fit()\ngain = 2.0\nfit()\n"))
    assert not reasons(f"{code}gain = 2.0\nfit()\nfit()\n")


def test_the_mode_of_a_layer_that_keeps_none() -> None:
    code = HEAD + "model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())\nmodel.eval()\nprint(model.training)\n"
    assert any("keeps a mode" in reason for reason in reasons(code))
    assert not reasons(code.replace("nn.ReLU()", "nn.Dropout(0.5)"))
    assert not reasons(code.replace("model.eval()\n", ""))


SCHEDULE = """\
class Schedule:
    def __init__(self):
        self.factor = 1.0

    def scale(self, x):
        return torch.tanh(x * self.factor)


schedule = Schedule()
"""


@pytest.mark.parametrize("model", ["Net(schedule.scale)", "Net(lambda t: t * schedule.factor)"])
def test_an_attribute_of_another_object_is_set_again(model: str) -> None:
    code = f"{HEAD}{SCHEDULE}model = {model}\n{STEPS}".replace("gain = gain", "schedule.factor = schedule.factor")
    assert any("factor, which changes while the program runs" in reason for reason in reasons(code))
    assert not reasons(code.replace("schedule.factor = schedule.factor", "other = schedule.factor"))


def test_a_setting_that_a_forward_pass_reads_is_set_again() -> None:
    head = HEAD.replace("import functools\n", "import argparse\n").replace("* gain", "* args.gain")
    code = f"{head}args = argparse.Namespace(gain=1.0)\nmodel = Scaled()\n{STEPS}"
    set_again = code.replace("gain = gain * 0.5", "args.gain = args.gain * 0.5")
    assert any("args.gain, which changes" in reason for reason in reasons(set_again))
    assert not reasons(code)
    assert not reasons(code.replace("model = Scaled()", "args.gain = 2.0\nmodel = Scaled()"))


@pytest.mark.parametrize("asked", ['getattr(self, "training")', 'getattr(self, "training", True)'])
def test_a_mode_that_is_read_by_name(asked: str) -> None:
    code = HEAD.replace("* gain\n\n\nx =", f"* (2 if {asked} else 1)\n\n\nx =")
    assert any("no attribute of this name" in reason for reason in reasons(code))
    assert not reasons(code.replace(asked, "self.training"))


HOOKED = """\
import torch
from torch import nn

kept = {}


def keep_as(name):
    def hook(module, args, output):
        kept[name] = output.detach()

    return hook


net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    loss = net(torch.ones(2, 3)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
handle = net[0].register_forward_hook(keep_as("first"))
out = net(torch.ones(2, 3))
handle.remove()
print(kept["first"].shape)
"""


def test_a_hook_that_a_function_makes_is_run_by_no_step() -> None:
    handed = HOOKED.replace("net = nn.Sequential(", "more = keep_as('more')\nnet = nn.Sequential(")

    assert not convert(HOOKED).gaps
    assert ["hook changes kept" in gap.reason for gap in convert(handed).gaps] == [True]
