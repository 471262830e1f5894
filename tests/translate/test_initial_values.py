"""Initial values of layers: PyTorch's in one argument, or left to Flax."""

from __future__ import annotations

import ast

import jax
import jax.numpy as jnp
import pytest
import torch
from flax import nnx

from t2j_lsp import convert
from t2j_lsp.rules.helpers.init import uniform_init

LAYERS = {
    "nn.Linear(4, 3)": ("nnx.Linear(4, 3, **uniform_init(4), rngs=rngs)", "nnx.Linear(4, 3, rngs=rngs)"),
    "nn.Linear(4, 3, bias=False)": (
        "nnx.Linear(4, 3, use_bias=False, kernel_init=uniform_fan_in, rngs=rngs)",
        "nnx.Linear(4, 3, use_bias=False, rngs=rngs)",
    ),
    "nn.Embedding(4, 3)": (
        "nnx.Embed(4, 3, embedding_init=jax.random.normal, rngs=rngs)",
        "nnx.Embed(4, 3, rngs=rngs)",
    ),
}
NET = """import torch
from torch import nn

WIDE = "lines that are so long that each layer fits into one with the arguments of PyTorch's initial values, 120 or so"


class Net(nn.Module):
    def __init__(self, width=4, kernel=3):
        super().__init__()
        self.first = {0}
        self.second = {0}

    def forward(self, x):
        return self.second(self.first(x))
"""


@pytest.mark.parametrize("layer", LAYERS)
def test_initial_values_are_torchs_or_left_to_flax(layer: str) -> None:
    source = NET.format(layer)
    torchs, flaxs = LAYERS[layer]
    done, left = convert(source), convert(source, init="flax")
    assert ast.unparse(ast.parse(done.code)).count(torchs) == 2 and not done.findings
    assert left.code.count(flaxs) == 2 and "_init" not in left.code.replace("__init__", "")
    assert [f.code for f in left.findings] == ["note"] and "--init flax" in left.findings[0].reason


CONVOLUTIONS = {
    "nn.Conv2d(4, 8, 3)": "nnx.Conv(4, 8, (3, 3), padding=0, **uniform_init(36), rngs=rngs)",
    "nn.Conv2d(4, 8, 3, groups=2)": "**uniform_init(18), rngs=rngs)",
    "nn.Conv2d(width, 8, (3, 2))": "**uniform_init(width * 6), rngs=rngs)",
    "nn.Conv2d(width, 8, 1, groups=width)": "**uniform_init(width // width), rngs=rngs)",
    "nn.Conv1d(4, 8, kernel)": "**uniform_init(4 * kernel), rngs=rngs)",
}


@pytest.mark.parametrize("layer", CONVOLUTIONS)
def test_a_convolution_counts_the_inputs_of_an_output(layer: str) -> None:
    net = NET.replace("        self.second = {0}\n", "").replace("self.second(self.first(x))", "self.first(x)")
    code = ast.unparse(ast.parse(convert(net.format(layer)).code))
    assert CONVOLUTIONS[layer] in code


def test_kernel_and_bias_lie_within_the_bound_of_the_inputs() -> None:
    layer = nnx.Linear(400, 500, **uniform_init(400), rngs=nnx.Rngs(0))
    for values in (layer.kernel[...], layer.bias[...]):
        assert 0.049 < jnp.abs(values).max() <= 0.05 and values.dtype == jnp.float32
    half = nnx.Linear(400, 500, **uniform_init(400), rngs=nnx.Rngs(0), param_dtype=jnp.bfloat16)
    assert half.kernel[...].dtype == half.bias[...].dtype == jnp.bfloat16
    assert isinstance(layer.kernel[...], jax.Array)


FIXED = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 6, (3, 2), groups={0}, bias=False)
        self.fc = nn.Linear(4, 6)
        self.w = nn.Parameter(torch.zeros(3, 4))
        nn.init.dirac_(self.conv.weight{1})
        nn.init.eye_(self.fc.weight)
        nn.init.eye_(self.w)
"""


@pytest.mark.parametrize(("groups", "given"), [(1, ""), (2, ", groups=2"), (2, ""), (1, ", 2")])
def test_fixed_values_are_pytorchs(groups: int, given: str) -> None:
    source = FIXED.format(groups, given)
    wanted: dict[str, type[torch.nn.Module]] = {}
    names: dict[str, type[nnx.Module]] = {}
    exec(compile(source, "<source>", "exec"), wanted)
    exec(compile(convert(source).code, "<converted>", "exec"), names)
    torch_side, jax_side = wanted["Net"](), names["Net"](rngs=nnx.Rngs(0))
    kernel = torch_side.conv.weight.detach().permute(2, 3, 1, 0).numpy()
    assert jnp.array_equal(jax_side.conv.kernel[...], kernel)
    assert jnp.array_equal(jax_side.fc.kernel[...], torch_side.fc.weight.detach().numpy().T)
    assert jnp.array_equal(jax_side.w[...], torch_side.w.detach().numpy())


def test_only_a_convolution_is_filled_by_dirac() -> None:
    source = FIXED.format(1, "").replace("nn.Conv2d(4, 6, (3, 2), groups=1", "nn.ConvTranspose2d(4, 6, (3, 2)")
    assert [gap.name for gap in convert(source).gaps] == ["torch.nn.init.dirac_"]


def test_dirac_fills_a_parameter_of_ones_own() -> None:
    source = FIXED.format(1, "").replace("self.conv.weight", "self.w")
    assert "self.w[...] = dirac(in_axis=1, out_axis=0)(" in convert(source).code
