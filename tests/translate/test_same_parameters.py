"""``a.weight is b.weight`` asks for Variables: the arrays that these give are never the same object."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert

from .side_by_side import compare, randomized, sides

SOURCE = """\
import torch
from torch import nn


class Tied(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part
        self.out = nn.Linear(3, 3)


part = nn.Linear(3, 3)
one, other = Tied(part), Tied(part)
pair = nn.Sequential(part, nn.ReLU(), nn.Linear(3, 3))
seen = [
    one.out.weight is one.out.weight,
    pair[0].bias is part.bias,
    part.weight is pair[0].weight,
    one.out.weight is other.out.weight,
    one.out.weight is not part.weight,
    part.bias is None,
]
"""


def test_the_same_parameter_is_the_same_variable() -> None:
    pair = sides(SOURCE, "same_parameters")
    assert not pair.gaps()
    assert pair.jax.seen == pair.torch.seen == [True, True, True, False, True, False]


def test_a_weight_that_is_transposed_in_flax_is_told() -> None:
    text = "import torch\nfrom torch import nn\n\nrows, head = nn.Embedding(4, 3), nn.Linear(3, 4)\n"
    done = convert(f"{text}print(head.weight is rows.weight)\n")
    assert any("never the same Variable" in gap.reason for gap in done.gaps)


REGISTERED = """\
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n, n))
        self.register_parameter("weight", self.weight)
        {again}
        self.emb = nn.Embedding(5, n)

    def forward(self, x):
        return torch.sin(x @ self.weight) + x @ self.again
"""


@pytest.mark.parametrize(
    "again",
    [
        'self.register_parameter("again", self.weight)',
        'setattr(self, "again", self.weight)',
        "self.again = self.weight",
    ],
)
def test_a_parameter_that_is_registered_again_stays_a_parameter(again: str) -> None:
    """What ``register_parameter`` was given was read: an array took the parameter's place, which nothing trained."""
    both = sides(REGISTERED.format(again=again), "registered")
    assert not both.gaps() and both.translation.code.count("self.weight = ") == 1
    cell = both.jax.Cell(3, rngs=nnx.Rngs(0))
    assert cell.again is cell.weight
    with jax.enable_x64(True):
        compare(randomized(both.torch.Cell(3)), both.jax.Cell(3, rngs=nnx.Rngs(0)), [np.ones((2, 3)) / 7])


@pytest.mark.parametrize(
    "again",
    [
        "self.again = layer.weight",
        'self.register_parameter("again", layer.weight)',
        'setattr(self, "again", layer.weight)',
    ],
)
def test_a_second_name_of_a_kernel_is_told(again: str) -> None:
    text = REGISTERED.replace("(self, n):", "(self, n, layer: nn.Linear):").format(again=again)
    assert any("second name" in gap.reason for gap in convert(text).gaps)


SHARED = """import torch
from torch import nn


class Sampler(nn.Module):
    def __init__(self, mean, deviation=1.0):
        super().__init__()
        self.mean, self.deviation = nn.Parameter(mean), deviation


class Net(nn.Module):
    def __init__(self, n, layer):
        super().__init__()
        self.w = nn.Parameter(torch.randn(n))
        {statement}
"""


@pytest.mark.parametrize("statement", ["self.v = nn.Parameter(self.w)", "self.s = Sampler(mean=self.w)"])
def test_a_parameter_made_of_another_shares_its_memory(statement: str) -> None:
    (gap,) = convert(SHARED.format(statement=statement)).gaps
    assert "shares the memory of self.w" in gap.reason


@pytest.mark.parametrize(
    "statement",
    ["self.w = nn.Parameter(self.w)", "self.s = Sampler(self.w.clone())", "self.s = Sampler(torch.ones(n), self.w)"],
)
def test_a_parameter_of_a_copy_shares_nothing(statement: str) -> None:
    assert not convert(SHARED.format(statement=statement)).gaps
