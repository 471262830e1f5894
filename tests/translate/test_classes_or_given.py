"""An attribute that is a class in one branch and what the constructor is given in another makes modules, with rngs."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
from flax import nnx

from t2j_lsp import convert

TEXT = """import torch
from torch import nn


class Own(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.lin = nn.Linear(n, m)

    def forward(self, x):
        return self.lin(x)


class Net(nn.Module):
    def __init__(self, kind=1, made=None):
        super().__init__()
        self.kind = kind
        {branches}
        self.layer = {made}

    def chosen(self):
        if self.kind == 1:
            found = Own
        else:
            found = nn.Linear
        return found

    def make(self):
        return self.made(3, 4)

    def forward(self, x):
        return self.layer(x)
"""
BRANCHES = {
    "a class": "if made is None:\n            self.made = Own\n        else:\n            self.made = made",
    "the other way": "if made is not None:\n            self.made = made\n        else:\n            self.made = Own",
    "a layer": "if made is None:\n            self.made = nn.Linear\n        else:\n            self.made = made",
    "one of two": (
        "if made is None:\n            self.made = Own if kind else nn.Linear\n"
        "        else:\n            self.made = made"
    ),
    "what a method gives": (
        "if made is None:\n            self.made = self.chosen()\n        else:\n            self.made = made"
    ),
}


@pytest.mark.parametrize("made", ["self.made(3, 4)", "self.make()"])
@pytest.mark.parametrize("branches", BRANCHES.values(), ids=BRANCHES)
def test_what_may_be_given_is_made_with_rngs(branches: str, made: str) -> None:
    done = convert(TEXT.format(branches=branches, made=made))
    assert not done.gaps
    names: dict[str, Any] = {}
    exec(done.code, names)
    assert names["Net"](rngs=nnx.Rngs(0))(jnp.ones((2, 3))).shape == (2, 4)


def test_a_function_or_what_is_given_is_called_as_it_was() -> None:
    branches = "if made is None:\n            self.made = torch.relu\n        else:\n            self.made = made"
    code = convert(TEXT.format(branches=branches, made="Own(3, 4)").replace("self.made(3, 4)", "self.made(3)")).code
    assert "return self.made(3)" in code


HANDED = """import torch
from torch import nn


def noisy(x):
    return x + 0 * torch.rand(3)


class Block(nn.Module):
    def __init__(self, fn=None):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x) if self.fn else x * 2


class Net(nn.Module):
    def __init__(self, flag: bool):
        super().__init__()
        {given}
        self.block = Block(fn)

    def forward(self, x):
        return self.block(x)
"""


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize(
    "given",
    [
        "fn = None\n        if flag:\n            fn = noisy",
        "fn = noisy if flag else None",
        "gn = noisy if flag else None\n        fn = gn",
    ],
)
def test_a_function_that_draws_has_its_rngs_once_or_is_none(given: str, flag: bool) -> None:
    done = convert(HANDED.format(given=given))
    assert not done.gaps and done.code.count("functools.partial(") == 1
    names: dict[str, Any] = {}
    exec(done.code, names)
    assert float(names["Net"](flag, rngs=nnx.Rngs(0))(jnp.ones(3)).sum()) == (3 if flag else 6)
