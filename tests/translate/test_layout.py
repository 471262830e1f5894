"""Channels-last regions: standard nnx layers, with moves only at the border of a region."""

from __future__ import annotations

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
        self.conv1 = nn.Conv2d(3, 6, 3, padding=1)
        self.bn = nn.BatchNorm2d(6)
        self.conv2 = nn.Conv2d(6, 8, 3, stride=2, bias=False)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
{body}
"""


def forward(*lines: str) -> str:
    code = body(NET.replace("{body}", "\n".join("        " + line for line in lines)))
    return code.rpartition("def __call__(self, x):\n")[2]


def test_neighbours_cancel() -> None:
    code = forward("x = self.pool(F.relu(self.bn(self.conv1(x))))", "return self.conv2(x)")
    assert code.count("moveaxis") == 2
    assert "x = self.pool(jax.nn.relu(self.bn(self.conv1(jnp.moveaxis(x, -3, -1)))))" in code
    assert "return jnp.moveaxis(self.conv2(x), -1, -3)" in code


def test_a_value_that_is_read_elsewhere_is_moved_back() -> None:
    code = forward("y = self.conv1(x)", "n = y.shape[1]", "return self.conv2(y) + n")
    assert "y = jnp.moveaxis(self.conv1(jnp.moveaxis(x, -3, -1)), -1, -3)" in code


def test_a_branch_sees_channels_first() -> None:
    code = forward("y = self.conv1(x)", "if y is not None:", "    y = y.flatten(1)", "return y, self.conv2(x)")
    assert "y = jnp.moveaxis(self.conv1(jnp.moveaxis(x, -3, -1)), -1, -3)" in code


def test_standard_layers_carry_their_settings() -> None:
    code = body(NET.replace("{body}", "        return self.conv2(self.bn(self.conv1(x)))"))
    assert "nnx.Conv(3, 6, (3, 3), " in code and "**uniform_init(27)" in code
    assert "strides=2" in code
    assert "padding=0" in code
    assert "self.bn = BatchNorm(6, rngs=rngs)" in code


def test_a_layer_that_is_not_only_called_keeps_pytorchs_axes() -> None:
    code = body("""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 6, 3)

        def forward(self, x):
            return F.conv2d(x, self.conv.weight)
    """)
    assert "self.conv = Conv2d(3, 6, 3, rngs=rngs)" in code


def test_a_subclass_of_sequential_keeps_pytorchs_axes() -> None:
    code = body("""
    class Block(nn.Sequential):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 6, 3)
            self.norm = nn.BatchNorm2d(6)
    """)
    assert 'self.add_module("conv", Conv2d(3, 6, 3, rngs=rngs))' in code
    assert "moveaxis" not in code


PLACES = {
    "a list": ("return torch.stack([self.conv(y) for y in (x, 2 * x)])", ""),
    "a generator": ("return sum(self.conv(y) for y in (x, 2 * x))", ""),
    "a dictionary": ("return {k: self.conv(y) for k, y in dict(a=x, b=2 * x).items()}", ""),
    "a lambda": ("run = lambda y: self.conv(y)\n        return run(x)", ""),
    "a nested function": ("def run(y):\n            return self.conv(y) + 1\n        return run(x)", ""),
    "a function": ("return finish(self, x)", "def finish(net, x):\n    return net.conv(net.conv2(x)) + 1"),
    "names that are bound anew": (
        "y = self.conv(self.conv2(x))\n        y = [self.conv2(y) for y in (x, 2 * x)] + [y]\n        return y[0]",
        "",
    ),
    "a lambda's own name": (
        "y = self.conv2(x)\n        f = lambda y: self.conv(y)\n        return f(x) + f(2 * x)",
        "",
    ),
}


@pytest.mark.parametrize(("line", "outside"), PLACES.values(), ids=PLACES)
def test_calls_in_every_place_take_the_layout(line: str, outside: str) -> None:
    """The convolution is given its values as it takes them, wherever it is called."""
    source = f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.conv2 = nn.Conv2d(3, 3, 1)

    def forward(self, x):
        x = self.conv2(x).abs()
        {line}


{outside}
"""
    pair = sides(f"import torch\nfrom torch import nn\n{source}", "layout_places")
    reference = randomized(pair.torch.Net())
    with jax.enable_x64(True):
        compare(reference, pair.jax.Net(rngs=nnx.Rngs(0)), [np.random.default_rng(0).normal(size=(2, 3, 5, 7))])
    assert "nnx.Conv(" in pair.translation.code
