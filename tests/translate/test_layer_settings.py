"""Settings of layers that code reads: Flax's layers have them under other names, the helpers as PyTorch has."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert

from .side_by_side import compare, randomized, sides

READS = """\
import torch
from torch import nn
import torch.nn.functional as F


class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.norm = nn.LayerNorm(5)
        self.emb = nn.Embedding(10, 3)
        self.fc = nn.Linear(5, self.conv.out_channels)

    def forward(self, x):
        y = self.fc(self.norm(self.bn(self.conv(x))))
        return y * {read}
"""


@pytest.mark.parametrize(
    "read",
    [
        *("self.conv.padding[0]", "self.conv.stride[1]", "self.conv.kernel_size[0]", "self.conv.in_channels"),
        *("self.conv.dilation[0]", "self.conv.groups", "self.bn.num_features", "self.bn.eps", "self.norm.eps"),
        *("self.norm.normalized_shape[0]", "self.emb.embedding_dim", "self.emb.num_embeddings", "self.fc.in_features"),
    ],
)
def test_a_setting_that_is_read_is_pytorchs(read: str) -> None:
    both = sides(READS.format(read=read), "read_settings")
    assert both.gaps() == []
    x = np.random.default_rng(3).normal(size=(2, 4, 10, 9))
    with jax.enable_x64(True):
        compare(randomized(both.torch.A()), both.jax.A(rngs=nnx.Rngs(0)), [x])


def test_a_layer_whose_settings_nothing_reads_stays_a_standard_one() -> None:
    code = convert(READS.format(read="self.fc.out_features")).code
    assert all(f"self.{layer}(" in code for layer in ("norm = nnx.LayerNorm", "emb = nnx.Embed", "fc = nnx.Linear"))
    assert "LayerNorm(5, rngs=rngs)" in convert(READS.format(read="self.norm.normalized_shape[0]")).code


READ_BY_INITIAL_VALUES = """\
import math
from torch import nn


class Net(nn.Module):
    def __init__(self, squeeze: nn.Module):
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3)
        self.squeeze = squeeze
        for m in self.modules():
            if isinstance(m, {kind}):
                n = m.kernel_size[0] * m.out_channels
                m.weight.data.normal_(0, math.sqrt(2.0 / n))

    def forward(self, x):
        return self.squeeze(self.conv(x))
"""


@pytest.mark.parametrize("kind", ["nn.Conv2d", "(nn.Conv2d, nn.ConvTranspose2d)"])
def test_convolutions_are_asked_for_what_flaxs_have_whichever_file_made_them(kind: str) -> None:
    """A part from another file is Flax's own convolution; ``out_channels`` of it was none of its attributes."""
    both = sides(READ_BY_INITIAL_VALUES.format(kind=kind), "read_by_initial_values")
    assert both.gaps() == []
    assert "self.conv = nnx.Conv(" in both.translation.code
    net = both.jax.Net(nnx.Conv(8, 2, (1, 1), rngs=nnx.Rngs(1)), rngs=nnx.Rngs(0))
    assert np.std(net.squeeze.kernel[...]) > 0.5


@pytest.mark.parametrize("read", ["self.bn.momentum", "self.emb.max_norm"])
def test_a_setting_that_no_layer_of_flax_has_so_is_a_gap(read: str) -> None:
    assert [gap.code for gap in convert(READS.format(read=read)).gaps] == ["unsure"]


DERIVED = """\
import torch
from torch import nn
import torch.nn.functional as F


class A(nn.{base}):
    def forward(self, x):
        return {forward}
"""


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("base", "arguments", "forward"),
    [
        (
            "Conv1d",
            {"in_channels": 3, "out_channels": 4, "kernel_size": 3, "padding": 2},
            "F.conv1d(F.pad(x, (self.padding[0], 0)), self.weight, self.bias, self.stride, 0, self.dilation)",
        ),
        ("Linear", {"in_features": 9, "out_features": 4}, "F.linear(x, self.weight * 2, self.bias)"),
    ],
)
def test_a_class_derived_from_a_layer_reads_its_settings_and_its_bias(
    base: str, arguments: dict[str, int], forward: str, bias: bool
) -> None:
    both = sides(DERIVED.format(base=base, forward=forward), "derived_settings")
    assert both.gaps() == []
    x = np.random.default_rng(3).normal(size=(2, 3, 9))
    with jax.enable_x64(True):
        module = both.jax.A(**arguments, bias=bias, rngs=nnx.Rngs(0))
        compare(randomized(both.torch.A(**arguments, bias=bias)), module, [x])


@pytest.mark.parametrize(
    "layer", ["nn.Linear(2, 3, bias={})", "nn.Conv1d(2, 3, 1, bias={})", "nn.LayerNorm(3, bias={})"]
)
def test_a_bias_of_none_is_none(layer: str) -> None:
    """PyTorch asks whether it is true; Flax fails in the call of a layer with use_bias=None."""
    head = "import torch\nfrom torch import nn\n\nlayer = "
    assert convert(head + layer.format("None")).code == convert(head + layer.format("False")).code


PASSED = """\
import torch
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3)


class Pair(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.one = base()


pair = Pair(Base)
print(pair.one.{read})
"""


@pytest.mark.parametrize(
    ("read", "written"),
    [
        ("fc.weight.sum()", 'torch_parameter(pair.one.fc, "weight").sum()'),
        ("fc.bias.sum()", "pair.one.fc.bias.sum()"),
        ("fc.weights", "pair.one.fc.weights"),
    ],
)
def test_the_weight_of_a_part_of_a_module_of_unknown_class_is_looked_up(read: str, written: str) -> None:
    result = convert(PASSED.format(read=read))
    assert not result.gaps and written in result.code
