"""A parameter that takes over the ``requires_grad`` of another one: it has the kind and the flag of that variable."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
from flax import nnx

from t2j_lsp.api import convert

SOURCE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, trained: bool):
        super().__init__()
        self.proj = nn.Linear(3, 4)
        self.table = nn.Parameter(torch.zeros(3, 4), requires_grad=trained)

    def resize(self, n: int):
        new = nn.Linear(3, n)
        new.weight.requires_grad_(self.proj.weight.requires_grad)
        self.proj = new
        self.table = nn.Parameter(torch.ones(3, n), requires_grad=self.table.requires_grad)

    def forward(self, x):
        return self.proj(x) + self.table.sum(0)
"""


def net(*arguments: Any) -> Any:
    translation = convert(SOURCE)
    assert not translation.gaps and "requires_grad" not in translation.code
    names: dict[str, Any] = {}
    exec(translation.code, names)
    return names["Net"](*arguments, rngs=nnx.Rngs(0))


@pytest.mark.parametrize("trained", [True, False])
def test_what_was_frozen_stays_so(trained: bool) -> None:
    model = net(trained)
    kind = type(model.table)
    assert issubclass(kind, nnx.Param) == trained
    model.resize(5)
    assert type(model.table) is kind and model.table.shape == (3, 5) and (model.table[...] == 1).all()
    assert model(jnp.ones((2, 3))).shape == (2, 5)


def test_a_flag_is_taken_over() -> None:
    model = net(True)
    model.proj.kernel.set_metadata(trainable=False)
    model.table.set_metadata(trainable=False)
    model.resize(5)
    assert model.proj.kernel.get_metadata("trainable", True) is False
    assert model.table.get_metadata("trainable", True) is False
    assert model.proj.bias.get_metadata("trainable", True) is True


@pytest.mark.parametrize(
    "statement",
    [
        "return x if x.requires_grad else -x",
        "x.requires_grad_(y.requires_grad)",
        "return [self.proj.weight.requires_grad]",
    ],
)
def test_a_flag_that_is_asked_for_otherwise_is_a_gap(statement: str) -> None:
    method = f"\n    def asks(self, x: torch.Tensor, y: torch.Tensor):\n        {statement}\n"
    assert convert(SOURCE + method).gaps
