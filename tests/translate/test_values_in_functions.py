"""What a train step passes on to a function of the file is passed to it as that function uses it."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

from .training_sides import trained

SOURCE = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

model = nn.Linear(3, 1)
x = torch.linspace(-1, 1, 24).reshape(8, 3).sin()
y = x.sum(1, keepdim=True)
criterion = nn.MSELoss()
{function}
# train
opt = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for i in range(0, 8, 4):
    opt.zero_grad()
    loss = {call}
    loss.backward()
    opt.step()
    losses.append(loss.item())
"""
CASES = {
    "the bounds of a slice": (
        "def f(net, a, i, b):\n    return F.mse_loss(net(a[i : i + 4]), b[i : i + 4])",
        "f(model, x, i, y)",
    ),
    "a condition": (
        "def f(net, a, i, b):\n    return F.mse_loss(net(a), b) * (2 if i > 3 else 1)",
        "f(model, x, i, b=y)",
    ),
    "two functions": (
        "def cut(a, k):\n    return a[k : k + 4]\n\n\ndef f(net, i):\n    return F.mse_loss(net(cut(x, i)), cut(y, i))",
        "f(model, i)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_number_is_static_where_a_function_needs_its_value(case: str) -> None:
    function, call = CASES[case]
    assert (
        "bound_jit(train_step, model, opt, i=i)("
        in trained(SOURCE.format(function=function, call=call)).translation.code
    )


COUNTED = """\
import argparse
import torch
from torch import nn

class Spring(nn.Module):
    def __init__(self):
        super().__init__()
        self.at = nn.Parameter(torch.zeros(3))
    def forward(self, {parameters}):
        x = self.at
        {body}
        return x

def train(args, net, optimizer):
    for _ in range(args.epochs):
        optimizer.zero_grad()
        loss = (net({given}) - 1).square().mean()
        loss.backward()
        optimizer.step()

net = Spring()
args = argparse.ArgumentParser().parse_args()
train(args, net, torch.optim.Adam(net.parameters()))
"""


@pytest.mark.parametrize(
    ("parameters", "body", "given", "static"),
    [
        ("steps", "for _ in range(steps): x = x * 2", "args.steps", True),
        ("steps", "for _ in range(2 * steps): x = x * 2", "steps=args.steps", True),
        ("twice=False", "x = x * 2 if twice else x", "args.twice", True),
        ("scale", "x = x * scale", "args.scale", False),
        ("shift=0.0", "x = x + shift", "args.shift", False),
    ],
)
def test_a_forward_pass_says_which_values_it_counts_by(parameters: str, body: str, given: str, static: bool) -> None:
    """``range`` and ``if`` take no arrays that are traced."""
    done = translate(COUNTED.format(parameters=parameters, body=body, given=given))
    assert not done.gaps
    assert ("static_argnames" in done.code) is static


GATHERED = """\
import torch
from torch import nn

class Memory:
    def sample(self):
        return torch.zeros(4, 3), torch.zeros(4, 1, dtype=torch.int64)

def train(net, memory, optimizer):
    state, action = memory.sample()
    loss = net(state).gather(1, action).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

net = nn.Linear(3, 2)
train(net, Memory(), torch.optim.Adam(net.parameters()))
"""


def test_what_a_tensor_is_indexed_by_is_an_array_whatever_is_known_of_it() -> None:
    done = translate(GATHERED)
    assert not done.gaps and "static_argnames" not in done.code


GIVEN = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

model = nn.Linear(3, 1)


def loss_of(criterion, net, a, b):
    return criterion(net(a), b)


def fit(net, criterion, optimizer, batches):
    for a, b in batches:
        loss = loss_of(criterion, net, a, b)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())


losses = []
x = torch.linspace(-1, 1, 24).reshape(8, 3).sin()
# train
fit(model, F.mse_loss, torch.optim.SGD(model.parameters(), lr=0.1), [(x, x.sum(1, keepdim=True))] * 3)
"""


def test_a_loss_function_that_a_function_calls_is_passed_as_one() -> None:
    assert "jax.tree_util.Partial(criterion)" in trained(GIVEN).translation.code


def test_settings_that_a_function_reads_are_told() -> None:
    source = GIVEN.replace("criterion(net(a), b)", "F.mse_loss(net(a), b) * criterion.scale")
    source = source.replace("fit(model, F.mse_loss", "fit(model, types.SimpleNamespace(scale=2.0)")
    reasons = [gap.reason for gap in translate(f"import types\n{source}").gaps]
    assert any("an object that can't be passed to a compiled function" in reason for reason in reasons), reasons
