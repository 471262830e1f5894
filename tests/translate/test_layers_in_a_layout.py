"""Layers that go along with channels-last values: PReLU with one slope, and dropout of whole channels."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest
from flax import nnx

from .convert import body
from .side_by_side import compare, randomized, sides

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, padding=1)
        self.between = {layer}
        self.pool = nn.MaxPool2d(2)
        self.second = nn.Conv2d(6, 8, 3)

    def forward(self, x):
        return self.second(self.pool(self.between(self.first(x))))
"""
SEQUENTIAL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 6, 3), {layer}, nn.MaxPool2d(2), nn.Conv2d(6, 8, 3))

    def forward(self, x):
        return self.layers(x)
"""
SHARED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.PReLU()
        self.conv = nn.Conv2d(1, 4, 3)
        self.linear = nn.Linear(16, 8)

    def forward(self, x):
        return self.act(self.linear(x.flatten(1))).sum(1) + self.act(self.conv(x)).sum((1, 2, 3))
"""


@pytest.mark.parametrize("text", [NET, SEQUENTIAL], ids=["in attributes", "in a Sequential"])
@pytest.mark.parametrize(
    ("layer", "written"),
    [
        ("nn.PReLU()", "PReLU(rngs=rngs)"),
        ("nn.PReLU(init=0.1)", "PReLU(init=0.1, rngs=rngs)"),
        ("nn.Dropout2d()", "nnx.Dropout(0.5, broadcast_dims=(1, 2), rngs=rngs)"),
        ("nn.Dropout2d(p=0.2)", "nnx.Dropout(0.2, broadcast_dims=(1, 2), rngs=rngs)"),
    ],
)
def test_they_go_along(text: str, layer: str, written: str) -> None:
    code = body(text.replace("{layer}", layer))
    assert written in code
    assert code.count("moveaxis") == 2
    assert "ChannelsFirst" not in code


@pytest.mark.parametrize("text", [NET, SEQUENTIAL], ids=["in attributes", "in a Sequential"])
@pytest.mark.parametrize("layer", ["nn.PReLU(6)", "nn.PReLU(num_parameters=6)", "nn.PReLU(**{})", "nn.Dropout1d(0.1)"])
def test_others_are_given_pytorchs_axes(text: str, layer: str) -> None:
    code = body(text.replace("{layer}", layer))
    assert "broadcast_dims=(1, 2)" not in code
    assert code.count("moveaxis") == 4 or "ChannelsFirstConv" in code


@pytest.mark.parametrize("layer", ["nn.PReLU()", "nn.PReLU(6)", "nn.PReLU(init=0.1)", "nn.Dropout2d(0.3)"])
@pytest.mark.parametrize("text", [NET, SEQUENTIAL], ids=["in attributes", "in a Sequential"])
def test_values_are_the_same(text: str, layer: str) -> None:
    pair = sides(f"import torch\nfrom torch import nn\n{text.replace('{layer}', layer)}", "Net")
    with jax.enable_x64(True):
        reference = randomized(pair.torch.Net()).eval()
        made = pair.jax.Net(rngs=nnx.Rngs(0))
        made.eval()
        compare(reference, made, [np.random.default_rng(0).normal(size=(2, 3, 9, 9))])


def test_one_slope_is_taken_everywhere() -> None:
    code = body(SHARED)
    assert re.findall(r"moveaxis\(\w+", code) == ["moveaxis(x"]


def test_whole_channels_are_dropped() -> None:
    layer = nnx.Dropout(0.5, broadcast_dims=(1, 2), rngs=nnx.Rngs(0))
    kept = np.asarray(layer(np.ones((4, 5, 6, 7), np.float32)))
    assert {float(v) for v in kept.ravel()} == {0.0, 2.0}
    assert (kept == kept[:, :1, :1, :]).all()
