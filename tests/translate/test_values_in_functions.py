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
    assert "static_argnames=('i',)" in trained(SOURCE.format(function=function, call=call)).translation.code


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
