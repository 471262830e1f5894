"""``self.x = self.x.add_(1)``: an attribute that is given what an in-place method of its own returns."""

from __future__ import annotations

import pytest
from flax import nnx

from t2j_lsp import convert

from .side_by_side import sides

SOURCE = """
import torch
from torch import nn


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        self.seen = self.seen.mul_(0.5).add_(x.sum())
        return x * self.scale


class Matrix:
    def __init__(self):
        self.counts = torch.zeros(3, 3)

    def add(self, rows, values):
        self.counts = self.counts.index_put_(tuple(rows), values, accumulate=True)


def total():
    matrix = Matrix()
    matrix.add(torch.tensor([[0, 1], [1, 2]]), torch.ones(2))
    matrix.add(torch.tensor([[0, 1], [1, 2]]), torch.ones(2))
    counts = Counts()
    counts(torch.ones(2, 3))
    counts.seen = counts.seen.clamp_(0.0, 4.0)
    with torch.no_grad():
        counts.scale = counts.scale.mul_(3)
    return [matrix.counts.sum().item(), matrix.counts[0, 1].item(), counts.seen.sum().item(), counts.scale.sum().item()]
"""


def test_the_new_value_is_the_attributes() -> None:
    pair = sides(SOURCE, "assigned_in_place")
    assert not pair.gaps()
    assert pair.jax.total(rngs=nnx.Rngs(0)) == pair.torch.total() == [4.0, 2.0, 16.0, 9.0]


@pytest.mark.parametrize("line", ["self.other = self.counts.add_(1)", "self.counts = other.counts.add_(1)"])
def test_what_another_one_is_given_stays(line: str) -> None:
    head = "import torch\nclass A:\n    def __init__(self, other: torch.Tensor):\n"
    assert convert(f"{head}        self.counts = torch.zeros(3)\n        {line}\n").gaps
