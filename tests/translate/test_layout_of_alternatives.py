"""An attribute that holds one of several layers, as shortcuts do: channels-last where all of them are alike."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from .convert import body
from .side_by_side import compare, randomized, sides

NET = """import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.bn = nn.BatchNorm2d(3)
{made}

    def forward(self, x):
        out = self.bn(self.conv(x))
        return F.relu(out + self.shortcut(x))
"""
CHAIN = "nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3))"
ALIKE = {
    "an identity first": f"self.shortcut = nn.Identity()\nif wide:\n    self.shortcut = {CHAIN}",
    "an empty Sequential first": f"self.shortcut = nn.Sequential()\nif wide:\n    self.shortcut = {CHAIN}",
    "branches": f"if wide:\n    self.shortcut = {CHAIN}\nelse:\n    self.shortcut = nn.Conv2d(3, 3, 1, bias=False)",
    "a choice": f"self.shortcut = {CHAIN} if wide else nn.Identity()",
}
UNLIKE = {
    "a layer that knows one order": "self.shortcut = nn.Conv2d(3, 3, 1) if wide else nn.Softmax(dim=1)",
    "another number of axes": "self.shortcut = nn.Conv2d(3, 3, 1) if wide else nn.Conv1d(3, 3, 1)",
    "something unknown": "self.shortcut = nn.Conv2d(3, 3, 1)\nif wide:\n    self.shortcut = wide",
    "what ends the layout": (
        "self.shortcut = nn.Identity()\nif wide:\n    self.shortcut = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Flatten())"
    ),
}


def source(made: str) -> str:
    return NET.replace("{made}", "\n".join("        " + line for line in made.splitlines()))


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("name", ALIKE)
def test_alternatives_that_are_alike_are_channels_last(name: str, wide: bool) -> None:
    pair = sides(source(ALIKE[name]), f"alternatives_{name.replace(' ', '_')}_{wide}")
    code = pair.translation.code
    assert pair.translation.gaps == () and "ChannelsFirst" not in code and "axis=1" not in code
    assert code.count("moveaxis(") == 3, code  # the input twice, the value once
    with jax.enable_x64(True):
        inputs = [np.random.default_rng(0).normal(size=(2, 3, 5, 4))]
        compare(randomized(pair.torch.Net(wide)), pair.jax.Net(wide, rngs=nnx.Rngs(0)), inputs)


@pytest.mark.parametrize("name", UNLIKE)
def test_alternatives_that_differ_keep_pytorchs_axes(name: str) -> None:
    code = body(source(UNLIKE[name]).partition("from torch import nn\n")[2])
    assert "self.shortcut(x)" in code, code
