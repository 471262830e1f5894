"""``self.shortcut = nn.Sequential()`` of a residual block is an empty nnx.Sequential, where nothing reads it."""

from __future__ import annotations

import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert

from .side_by_side import compare, sides

BLOCK = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, i=3, o=3):
        super().__init__()
        self.fc = nn.Linear(i, o)
        self.shortcut = nn.Sequential()
        if i != o:
            self.shortcut = nn.Sequential(nn.Linear(i, o), nn.Tanh())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        {read}
        return self.fc(x) + self.shortcut(x)
"""


@pytest.mark.parametrize("arguments", [(), (3, 4)])
def test_it_gives_what_it_is_given(arguments: tuple[int, ...]) -> None:
    pair = sides(BLOCK.format(read="pass"), "empty_sequential")
    assert not pair.gaps() and "self.shortcut = nnx.Sequential()" in pair.translation.code
    module = pair.jax.Block(*arguments, rngs=nnx.Rngs(0))
    compare(pair.torch.Block(*arguments), module, (np.float32(np.arange(6)).reshape(2, 3),), tolerance=1e-6)


@pytest.mark.parametrize(
    "read",
    [
        "n = len(self.shortcut)",
        "n = list(self.shortcut.children())",
        "self.shortcut.add_module('act', nn.ReLU())",
        "n = isinstance(self.shortcut, nn.Sequential)",
        "for layer in self.shortcut:\n            x = layer(x)",
    ],
)
def test_one_that_is_read_or_filled_stays_empty(read: str) -> None:
    assert "self.shortcut = Sequential()" in convert(BLOCK.format(read=read)).code
