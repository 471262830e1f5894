"""Channels-last regions: standard nnx layers, with moves only at the border of a region."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert

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
    code = forward("y = self.conv1(x)", "n = y.argmax()", "return self.conv2(y) + n")
    assert "y = self.conv1(jnp.moveaxis(x, -3, -1))" in code and "n = jnp.moveaxis(y, -1, -3).argmax()" in code


def test_a_branch_sees_channels_first() -> None:
    code = forward("y = self.conv1(x)", "if y is not None:", "    y = y.flatten(1)", "return y, self.conv2(x)")
    assert "y = jnp.moveaxis(self.conv1(jnp.moveaxis(x, -3, -1)), -1, -3)" in code


def test_standard_layers_carry_their_settings() -> None:
    code = body(NET.replace("{body}", "        return self.conv2(self.bn(self.conv1(x)))"))
    assert "self.conv1 = conv(3, 6, (3, 3), padding=1, rngs=rngs)" in code
    assert "self.conv2 = conv(6, 8, (3, 3), strides=2, padding=0, use_bias=False, rngs=rngs)" in code
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
    assert "self.conv = ChannelsFirstConv(3, 6, (3, 3), padding=0, rngs=rngs)" in code


def test_a_subclass_of_sequential_keeps_pytorchs_axes() -> None:
    code = body("""
    class Block(nn.Sequential):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 6, 3)
            self.norm = nn.BatchNorm2d(6)
    """)
    assert 'self.add_module("conv", ChannelsFirstConv(3, 6, (3, 3), padding=0, rngs=rngs))' in code
    assert 'self.add_module("norm", BatchNorm(6, axis=1, rngs=rngs))' in code
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


CHAINS = {
    "features behind convolutions": (
        "self.net = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.LeakyReLU(0.1), nn.BatchNorm2d(4), nn.MaxPool2d(2),"
        " nn.Flatten(), nn.Linear(8, 5), nn.BatchNorm1d(5))",
        "jnp.moveaxis(x, -1, -3).reshape(x.shape[0], -1)",
    ),
    "the mean behind convolutions": (
        "self.net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))",
        "lambda x: jnp.mean(x, axis=(-3, -2), keepdims=True)",
    ),
    "images made of features": (
        "self.net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 6 * 9, 24), nn.ReLU(), nn.Unflatten(1, (2, 3, 4)),"
        " nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=(0, 1)), nn.Tanh())",
        "jnp.moveaxis(x.reshape(x.shape[0], 2, 3, 4), 1, -1)",
    ),
    "images made larger": (
        "self.net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Upsample(scale_factor=2), nn.ReLU(), nn.Conv2d(4, 2, 1))",
        "lambda x: x.repeat(2, axis=-3).repeat(2, axis=-2)",
    ),
    "larger at the end and at the start": (
        "self.net = nn.Sequential(nn.Upsample(scale_factor=3), nn.Conv2d(3, 4, 3), nn.Upsample(scale_factor=2))",
        "lambda x: x.repeat(3, axis=-3).repeat(3, axis=-2)",
    ),
    "a list that is filled": (
        "layers = [nn.Conv2d(3, 4, 3, padding=1)]\n"
        "        for i in range(2):\n"
        "            layers.append(nn.Conv2d(4, 4, 2, padding=i))\n"
        "            layers += [nn.BatchNorm2d(4), nn.ReLU()]\n"
        "        layers.extend([nn.Conv2d(4, 2, 1)])\n"
        "        self.net = nn.Sequential(*layers)",
        "nnx.Conv(4, 4, (2, 2), padding=i, ",
    ),
    "lists under one name": (
        "parts = []\n"
        "        parts.append(nn.Linear(2, 2))\n"
        "        self.other = nn.Sequential(*parts)\n"
        "        parts = [nn.Conv2d(3, 4, 2)]\n"
        "        self.net = nn.Sequential(*parts, nn.Flatten())",
        "jnp.moveaxis(x, -1, -3).reshape(x.shape[0], -1)",
    ),
    "transposed convolutions": (
        "self.net = nn.Sequential(nn.ConvTranspose2d(3, 4, (2, 3), (2, 1), dilation=(1, 2), bias=False),"
        " nn.ConvTranspose2d(4, 2, 4, 2, 1), nn.Conv2d(2, 2, 1))",
        "kernel_dilation=(1, 2)",
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_the_layout_changes_where_a_sequential_reshapes_anyway(name: str) -> None:
    made, written = CHAINS[name]
    source = f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, x):
        return self.net(x)
"""
    pair = sides(f"import torch\nfrom torch import nn\n{source}", f"layout_{name.replace(' ', '_')}")
    assert written in pair.translation.code
    assert "class Conv" not in pair.translation.code
    reference = randomized(pair.torch.Net())
    with jax.enable_x64(True):
        compare(reference, pair.jax.Net(rngs=nnx.Rngs(0)), [np.random.default_rng(0).normal(size=(2, 3, 6, 9))])


KEPT = {
    "a layer that knows one order behind a convolution": "nn.Sequential(nn.Conv2d(3, 4, 3), nn.Softmax(dim=1))",
    "features from another axis": "nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(2))",
    "a factor that is not known": "nn.Sequential(nn.Conv2d(3, 4, 3), nn.Upsample(scale_factor=size))",
    "another size": "nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d((1, 2)))",
    "sizes that are no image": "nn.Sequential(nn.Unflatten(1, (3, 1)), nn.Conv2d(3, 4, 3))",
    "a list that is read": "nn.Sequential(*(layers if layers else [nn.Conv2d(3, 4, 3)]))",
    "groups": "nn.ConvTranspose2d(4, 4, 3, groups=2)",
    "a size that is not known": "nn.ConvTranspose2d(4, 4, size)",
}


@pytest.mark.parametrize("name", KEPT)
def test_what_has_no_sure_form_keeps_pytorchs_axes(name: str) -> None:
    code = body(f"""
    class Net(nn.Module):
        def __init__(self, layers, size):
            super().__init__()
            self.net = {KEPT[name]}

        def forward(self, x):
            return self.net(x)
    """)
    assert "moveaxis" not in code and re.search(r"ChannelsFirstConv(Transpose)?\(|Conv2d\(|ConvTranspose2d\(", code)


def test_a_list_that_is_used_otherwise_keeps_pytorchs_axes() -> None:
    for other in ("layers[0].bias.data.zero_()", "layers.insert(0, nn.Softmax(1))", "self.layers = layers"):
        code = body(f"""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                layers = [nn.Conv2d(3, 4, 3)]
                {other}
                self.net = nn.Sequential(*layers)

            def forward(self, x):
                return self.net(x)
        """)
        assert "moveaxis" not in code.replace("jnp.moveaxis(layers", ""), other


@pytest.mark.parametrize("annotation", ['"nn.Conv2d"', '"list[nn.Conv2d]"', 'list["nn.Conv2d"]'])
def test_a_convolution_that_an_annotation_names_in_a_text(annotation: str) -> None:
    text = "import torch\nfrom torch import nn\n\n\ndef f(conv: {}, x: torch.Tensor):\n    return torch.relu(x)\n"
    translation = convert(text.format(annotation))
    assert not translation.gaps and "return jax.nn.relu(x)" in translation.code
