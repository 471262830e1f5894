"""Losses of the output are compiled where a training program calls them outside of its steps."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

PROGRAM = """\
import torch
from torch import nn
import torch.nn.functional as F

model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
x, y = torch.ones(4, 3), torch.zeros(4, dtype=torch.long)


def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)


for i in range(5):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
{behind}
"""
COMPILED = "@jax.jit\ndef cross_entropy(logits, target):\n"


@pytest.mark.parametrize(
    "behind",
    ["print(criterion(model(x), y).item())", "print(F.cross_entropy(model(x), y))", "print(loss_of(model, x, y))"],
)
def test_losses_that_are_evaluated_are_compiled(behind: str) -> None:
    assert COMPILED in convert(PROGRAM.replace("{behind}", behind)).code


@pytest.mark.parametrize(
    "behind",
    [
        "print(loss.item())",
        "class Judge(nn.Module):\n    def forward(self, x, y):\n        return F.cross_entropy(x, y)",
    ],
)
def test_losses_of_steps_and_modules_are_compiled_with_them(behind: str) -> None:
    code = convert(PROGRAM.replace("{behind}", behind)).code
    assert "def cross_entropy(" in code and COMPILED not in code


def test_losses_that_take_more_than_arrays_stay_as_they_are() -> None:
    behind = "for way in ('mean', 'sum'):\n    print(F.cross_entropy(model(x), y, reduction=way))"
    code = convert(PROGRAM.replace("{behind}", behind)).code
    assert "def cross_entropy(" in code and "@jax.jit\ndef cross_entropy" not in code


def test_files_without_training_are_left_as_they_are() -> None:
    source = "import torch.nn.functional as F\n\n\ndef f(x, y):\n    return F.cross_entropy(x.softmax(1), y)\n"
    assert "@jax.jit" not in convert(source).code
