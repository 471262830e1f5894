"""Functions that take a module or what makes one: activations are functions in JAX, and so is what makes a module."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from .side_by_side import compare, randomized, sides

NET = """\
from torch import nn


def default(val, d{}):
    if val is not None:
        return val
    return d() if not isinstance(d, nn.Module) and callable(d) else d


class Net(nn.Module):
    def __init__(self, act=None, head=None, width=3):
        super().__init__()
        self.head = default(head, {})
        self.act = default(act, {})

    def forward(self, x):
        return self.act(self.head(x))
"""
LINEAR = "lambda: nn.Linear(3, 3) if width == 3 else nn.Identity()"
KNOWN = {
    "functions": ("", LINEAR, "lambda: nn.Tanh()"),
    "functions and layers": ("", LINEAR, "nn.BatchNorm1d(3)"),
    "activations": ("", "nn.Linear(3, 3)", "nn.Tanh()"),
    "classes and activations": ("=nn.Tanh", "nn.GELU()", "nn.ReLU"),
}


@pytest.mark.parametrize("texts", KNOWN.values(), ids=list(KNOWN))
def test_what_makes_a_module_is_called_and_a_module_is_not(texts: tuple[str, ...]) -> None:
    both = sides(NET.format(*texts), "made_or_given")
    assert not both.gaps()
    x = np.random.default_rng(0).normal(size=(5, 3))
    with jax.enable_x64(True):
        compare(randomized(both.torch.Net()), both.jax.Net(rngs=nnx.Rngs(0)), [x], train=True, jit=True)


@pytest.mark.parametrize("values", [(LINEAR, "nn.Tanh()"), (LINEAR, "act"), ("head", "act")])
def test_what_may_be_either_is_a_gap(values: tuple[str, str]) -> None:
    assert "ask in another way" in "".join(sides(NET.format("", *values), "made_or_given").gaps())
