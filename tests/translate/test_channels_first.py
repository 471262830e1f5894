"""Layers that stay channels-first: Flax's arguments where all of a kind are built in plain sight."""

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
    def __init__(self, size: int = 3, kinds=None):
        super().__init__()
        layers = [nn.ReLU()]
        layers.insert(0, {layer})
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""

FORMS = {
    "a convolution": ("nn.Conv2d(4, 6, 3)", "ChannelsFirstConv(4, 6, (3, 3), padding=0, rngs=rngs)", 2),
    "groups, strides and no bias": (
        "nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(2, 1), groups=2, bias=False)",
        "ChannelsFirstConv(4, 6, (3, 2), strides=(2, 1), padding=((2, 2), (1, 1)), feature_group_count=2,"
        " use_bias=False, rngs=rngs)",
        2,
    ),
    "sizes by name": (
        "nn.Conv1d(4, 6, size, padding=size, dilation=size)",
        "ChannelsFirstConv(4, 6, (size,), padding=size, kernel_dilation=size, rngs=rngs)",
        1,
    ),
    "a transposed convolution": (
        "nn.ConvTranspose2d(4, 6, (3, 2), stride=2, padding=1, output_padding=(1, 0), bias=False)",
        "ChannelsFirstConvTranspose(4, 6, (3, 2), strides=2, padding=((1, 2), (0, 0)), use_bias=False, rngs=rngs)",
        2,
    ),
    "a batch norm": ("nn.BatchNorm2d(4)", "BatchNorm(4, axis=1, rngs=rngs)", 2),
    "a batch norm with settings": (
        "nn.BatchNorm1d(4, eps=0.01, momentum=0.2)",
        "BatchNorm(4, axis=1, momentum=0.8, epsilon=0.01, rngs=rngs)",
        1,
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_layer_in_plain_sight_has_flaxs_arguments(name: str) -> None:
    layer, wanted, rank = FORMS[name]
    source = "import torch\nfrom torch import nn\n" + NET.replace("{layer}", layer)
    pair = sides(source, f"first_{name.replace(' ', '_')}")
    assert _run_together(wanted) in _run_together(pair.translation.code)
    for train in (False, True):
        reference = randomized(pair.torch.Net())
        x = np.random.default_rng(1).normal(size=(3, 4, 12, 9)[: rank + 2])
        with jax.enable_x64(True):
            compare(reference, pair.jax.Net(rngs=nnx.Rngs(0)), [x], train=train, jit=True)


def _run_together(code: str) -> str:
    """Code without what depends on the length of lines."""
    return "".join(code.split()).replace(",)", ")")


PYTORCHS = {
    "a class that travels": ("nn.Conv2d(4, 6, 3)", "\n\ndef f(layer=nn.Conv2d):\n    return layer(4, 6, 1)\n"),
    "another one that isn't exact": ("nn.Conv2d(4, 6, 3, padding_mode='reflect')", "\n\nlast = nn.Conv2d(4, 6, 3)\n"),
    "an argument of which nothing is known": ("nn.Conv2d(4, 6, kinds)", ""),
    "something that is asked for a setting": (
        "nn.Conv2d(4, 6, 3)",
        "\n\ndef f(layer):\n    return layer.in_channels\n",
    ),
    "a setting that a string names": (
        "nn.Conv2d(4, 6, 3)",
        "\n\ndef f(layer):\n    return getattr(layer, 'out_channels')\n",
    ),
    "one of two kinds that isinstance asks for": (
        "nn.Conv2d(4, 6, 3)",
        "\n\ndef f(m: nn.Module):\n    return isinstance(m, nn.Conv2d) and not isinstance(m, nn.Conv1d)\n",
    ),
    "a size that is given when it is called": (
        "nn.ConvTranspose2d(4, 6, 3)",
        "\n\ndef f(layer, x):\n    return layer(x, output_size=(9, 9))\n",
    ),
}


@pytest.mark.parametrize("name", PYTORCHS)
def test_elsewhere_it_is_a_class_with_pytorchs_arguments(name: str) -> None:
    layer, more = PYTORCHS[name]
    code = body(NET.replace("{layer}", layer) + more)
    assert "ChannelsFirst" not in code and re.search(r"\bConv(Transpose)?2d\(4, 6, ", code)


def test_an_isinstance_of_the_only_kind_asks_for_flaxs_class() -> None:
    code = body(NET.replace("{layer}", "nn.Conv2d(4, 6, 3)") + "\n\ndef f(m):\n    return isinstance(m, nn.Conv2d)\n")
    assert "ChannelsFirstConv(4, 6, (3, 3)" in code and "isinstance(m, nnx.Conv)" in code
