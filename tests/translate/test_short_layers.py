"""Layers whose initial values make their lines too long are made by one function of the file."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert

from .side_by_side import compare, randomized, sides

HEAD = "import torch\nfrom torch import nn\n\n\n"
LINEAR = """class Net(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.expand = nn.Linear(features * 2, features * 3, bias=False)
        self.mix = nn.Linear(features * 3, features * 4)
        self.third = nn.Linear(features * 4, 2)

    def forward(self, x):
        return self.third(self.mix(self.expand(x)))
"""
CONV = """class Net(nn.Module):
    def __init__(self, width, stride: int = 2):
        super().__init__()
        self.reduce = nn.Conv2d(width * 2, width * 4, 3, stride=stride, padding=1, bias=False)
        self.second = nn.Conv2d(width * 4, 6, (3, 2), groups=2)

    def forward(self, x):
        return self.second(self.reduce(x))
"""
TRANSPOSE = """class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(
            nn.ConvTranspose2d(width * 2, width * 4, 3, stride=2, padding=1, output_padding=1, bias=False),
            nn.ConvTranspose2d(width * 4, 5, (3, 2), stride=2),
        )

    def forward(self, x):
        return self.net(x)
"""


def test_layers_that_dont_fit_into_their_lines_are_made_by_a_function() -> None:
    code = convert(HEAD + LINEAR).code
    assert "self.expand = linear(features * 2, features * 3, use_bias=False, rngs=rngs)\n" in code
    assert "self.third = linear(features * 4, 2, rngs=rngs)\n" in code
    assert "return nnx.Linear(inputs, outputs, **uniform_init(inputs), **options)\n" in code
    convolutions = convert(HEAD + CONV).code
    wanted = "conv(width * 2, width * 4, (3, 3), strides=stride, padding=1, use_bias=False, rngs=rngs)"
    assert "".join(wanted.split()) in "".join(convolutions.split())
    assert "self.second = conv(width * 4, 6, (3, 2), padding=0, feature_group_count=2, rngs=rngs)\n" in convolutions
    transposed = convert(HEAD + TRANSPOSE).code
    assert "transposed_conv(width * 4, 5, (3, 2), strides=2, padding=((2, 2), (1, 1)), rngs=rngs)" in transposed
    assert "return nnx.ConvTranspose(inputs, outputs, kernel, transpose_kernel=True, **options)\n" in transposed


IN_ONE_LINE = """class Net(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, x):
        return self.net(x)
"""


def test_layers_of_one_line_are_counted_together() -> None:
    code = convert(HEAD + IN_ONE_LINE + "\n\nx = [" + "1, " * 33 + "]\n").code
    assert (
        "        self.net = nnx.Sequential(linear(6, hidden, rngs=rngs), nnx.tanh, linear(hidden, 2, rngs=rngs))\n"
        in code
    )
    code = convert(
        HEAD + IN_ONE_LINE.replace("(self, hidden)", "(self)").replace("hidden", "8") + "\n\nx = [" + "1, " * 37 + "]\n"
    ).code
    assert "nnx.Linear(6, 8, **uniform_init(6), rngs=rngs), nnx.tanh" in code and "def linear" not in code


@pytest.mark.parametrize(
    ("source", "shape"), [(LINEAR, (5, 6)), (IN_ONE_LINE, (5, 6)), (CONV, (2, 6, 9, 7)), (TRANSPOSE, (2, 6, 4, 3))]
)
def test_they_are_the_same_layers(source: str, shape: tuple[int, ...]) -> None:
    pair = sides(HEAD + source, f"short_{len(source)}")
    module = pair.jax.Net(3, rngs=nnx.Rngs(0))
    with jax.enable_x64(True):
        compare(randomized(pair.torch.Net(3)), module, [np.random.default_rng(0).normal(size=shape)], jit=True)
    assert {type(m) for _, m in nnx.iter_modules(module)} <= {
        *(type(module), nnx.Sequential, nnx.List, nnx.Linear, nnx.Conv, nnx.ConvTranspose)
    }


def test_one_layer_is_written_out() -> None:
    kept = [line for line in CONV.splitlines(keepends=True) if "self.second = " not in line]
    code = convert(HEAD + "".join(kept).replace("self.second(self.reduce(x))", "self.reduce(x)")).code
    assert "            kernel_init=uniform_fan_in,\n" in code and "def conv" not in code


def test_lines_that_are_long_enough_are_left_as_they_are() -> None:
    code = convert(f"{HEAD}WIDE = [{', '.join(['1'] * 35)}]\n\n\n{LINEAR}").code
    assert "nnx.Linear(features * 3, features * 4, **uniform_init(features * 3), rngs=rngs)\n" in code


def test_initial_values_of_flax_need_no_function() -> None:
    code = convert(HEAD + LINEAR, init="flax").code
    assert "nnx.Linear(features * 3, features * 4, rngs=rngs)\n" in code


AT_ONCE = {
    "nn.LeakyReLU(0.2)(x)": "jnp.where(x > 0, x, 0.2 * x)",
    "2 * nn.LeakyReLU(0.2)(x)": "2 * jnp.where(x > 0, x, 0.2 * x)",
    "nn.AvgPool2d(2)(x + y)": "avg_pool2d(x + y, kernel_size=2)",
    "nn.GELU()(x - y).sum()": "nnx.gelu(x - y, approximate=False).sum()",
    "nn.LeakyReLU(0.2)(x + y)": "(lambda x: jnp.where(x > 0, x, 0.2 * x))(x + y)",
    "nn.KLDivLoss(reduction='sum')(x, y)": "kl_div(x, y, reduction='sum')",
}


@pytest.mark.parametrize("call", AT_ONCE)
def test_a_layer_that_is_called_at_once_is_one_call(call: str) -> None:
    code = convert(f"from torch import nn\n\n\ndef f(x, y):\n    return {call}\n").code
    assert f"    return {AT_ONCE[call]}\n" in code


OVER_LINES = """class Block(nn.Module):
    def __init__(self, dim_in, dim_out, stride):
        super().__init__()
        self.conv = nn.Conv2d(
            dim_in,
            dim_out,
            kernel_size=1,
            stride=stride * stride,  # of both
        )
        self.norm = nn.BatchNorm2d(dim_out)
        self.second = nn.Conv2d(dim_in, dim_out, kernel_size=1, stride=stride)

    def forward(self, x):
        return self.second(self.norm(self.conv(x)))


def make(dim_in, dim_out, stride):
    branch = [
        nn.Conv2d(
            dim_in,
            dim_out,
            kernel_size=stride,
            stride=stride * stride,
            bias=False,
        ),
        nn.ReLU(),
    ]
    return Block(dim_in, dim_out, stride), nn.Sequential(*branch)
"""


def test_a_comma_or_a_comment_may_stand_behind_the_last_argument() -> None:
    assert not convert(HEAD + OVER_LINES).gaps
