"""Loops that unpack the items of a list of lists: no Sequential is among them, so all of the file are Flax's own."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert

from .side_by_side import compare, randomized, sides

HEAD = "import torch\nfrom torch import nn\n\n\n"
BLOCK = """class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.Tanh())

    def forward(self, x):
        return self.net(x)


"""
STACK = """class Stack(nn.Module):
    def __init__(self, dim=4, depth=2):
        super().__init__()
        self.layers = nn.ModuleList({made})
        {filled}

    def forward(self, x):
        for {items}:
            x = first(x) + second(x)
        return x
"""
PAIR = "nn.ModuleList([Block(dim), nn.Linear(dim, dim)])"
MADE = f"[{PAIR} for _ in range(depth)]"
FILLED = f"self.layers.append({PAIR})"
SEEN = {
    "appended": ("[]", f"for _ in range(depth):\n            {FILLED}", "first, second in self.layers"),
    "written out": (MADE, "pass", "first, second in self.layers"),
    "counted": (MADE, "pass", "i, (first, second) in enumerate(self.layers)"),
}
UNSEEN = {
    "a Sequential among them": ("[]", "self.layers.append(nn.Sequential(Block(dim), Block(dim)))"),
    "a list that came from somewhere": ("[]", "self.layers.extend(made(dim))"),
    "a parameter": ("[]", "self.layers.append(depth)"),
    "an item that is set": ("[]", f"{FILLED}; self.layers[0] = made(dim)"),
    "another name for it": ("[]", f"{FILLED}; layers = self.layers; layers.append(made(dim))"),
    "a name that code reads": ("[]", f'{FILLED}; getattr(self, "layers").append(made(dim))'),
    "one of two classes": ("[]", f"self.layers.append({PAIR} if depth else nn.Sequential(Block(dim)))"),
}


@pytest.mark.parametrize("name", SEEN)
def test_a_file_that_unpacks_lists_has_sequentials_of_flax(name: str) -> None:
    made, filled, items = SEEN[name]
    both = sides(HEAD + BLOCK + STACK.format(made=made, filled=filled, items=items), "unpacked")
    assert not both.gaps() and "nnx.Sequential(" in both.translation.code
    assert "Sequential(nnx.Sequential):" not in both.translation.code
    with jax.enable_x64(True):
        x = np.random.default_rng(0).normal(size=(3, 4))
        compare(randomized(both.torch.Stack()), both.jax.Stack(rngs=nnx.Rngs(0)), [x])


@pytest.mark.parametrize("name", UNSEEN)
def test_where_a_sequential_may_be_unpacked_it_keeps_its_methods(name: str) -> None:
    made, filled = UNSEEN[name]
    code = convert(HEAD + BLOCK + STACK.format(made=made, filled=filled, items="first, second in self.layers")).code
    assert "Sequential(nnx.Sequential):" in code and "__iter__" in code
