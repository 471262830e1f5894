"""What forward passes hand each other beside images (sizes, flags, lists) keeps its axes, for it has none."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from .side_by_side import compare, randomized, sides

CLASSES = """
import torch
from torch import nn


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1, groups=3)

    def forward(self, x, {names}):
        {inner}


class Middle(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x, {names}):
        return self.inner(x, {names})


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.middle = Middle()

    def forward(self, x{given}):
        {net}
"""
TOKENS = (
    "return self.conv(x.transpose(1, 2).view(x.shape[0], -1, {names})).flatten(2).transpose(1, 2)",
    "_, _, h, w = x.shape; return self.middle(x.flatten(2).transpose(1, 2), h, w)",
)
HANDED = {
    "sizes": ("h, w", TOKENS[0].format(names="h, w"), TOKENS[1]),
    "sizes that are said to be numbers": ("h: int, w: int", TOKENS[0].format(names="h, w"), TOKENS[1]),
    "a flag": ("flag", "return self.conv(x) * 2 if flag else self.conv(x)", "return self.middle(x, x.shape[0] > 1)"),
    "a flag of the caller's": ("flag", "return self.conv(x) * 2 if flag else x", "return self.middle(x, given)"),
    "a tuple": ("sizes", "h, w = sizes; return self.conv(x)[:, :, :h, :w]", "return self.middle(x, (2, 4))"),
    "a list": ("more", "return self.conv(x) + more[0]", "return self.middle(x, [0.5])"),
    "another image": ("other", "return self.conv(x) + self.conv(other)", "return self.middle(x, x * 2)"),
}


def converted(name: str) -> tuple[str, str]:
    names, inner, net = HANDED[name]
    source = CLASSES.format(names=names, inner=inner, net=net, given=", given=True" * ("given" in net))
    return source.replace("self.inner(x, h: int, w: int)", "self.inner(x, h, w)"), f"handed_{list(HANDED).index(name)}"


@pytest.mark.parametrize("name", HANDED)
def test_what_has_no_axes_is_not_moved(name: str) -> None:
    both = sides(*converted(name))
    assert not both.gaps()
    with jax.enable_x64(True):
        x = np.random.default_rng(0).normal(size=(2, 3, 5, 6))
        compare(randomized(both.torch.Net()), both.jax.Net(rngs=nnx.Rngs(0)), [x])


def test_images_are_still_moved_once() -> None:
    code = sides(*converted("another image")).translation.code
    assert code.count("moveaxis(") == 3  # both in front of the outermost call, and what it gives
    assert "Channels last, (N, H, W, C): x, other and the result" in code
