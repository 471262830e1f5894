"""Layers that are given other parameters or settings: Flax's have them under other names, and in other layouts."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert

from .side_by_side import compare, sides

SOURCE = """\
import torch
from torch import nn


class A(nn.Module):
    def __init__(self, w=torch.arange(20.0).reshape(4, 5)):
        super().__init__()
        self.fc = nn.Linear(5, 4)
        self.other = nn.Linear(5, 4)
        self.conv = nn.Conv1d(4, 2, 3)
        self.norm = nn.LayerNorm(4)
        self.steps = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.drop = nn.Dropout(0.5)
        {statement}

    def forward(self, x):
        y = self.norm(self.drop(self.fc(x) + self.other(x)))
        return self.conv(self.steps(y).mT)
"""


def held(statement: str) -> str:
    """The converted constructor from the statement on."""
    translation = convert(SOURCE.format(statement=statement))
    assert not translation.gaps, translation.gaps
    return translation.code.partition("self.drop = nnx.Dropout(0.5, rngs=rngs)")[2].partition("    def __call__")[0]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("self.fc.weight = nn.Parameter(w)", "self.fc.kernel = nnx.Param(w.T)"),
        ("self.fc.weight = nn.Parameter(data=w * 2)", "self.fc.kernel = nnx.Param((w * 2).T)"),
        ("setattr(self.fc, 'weight', nn.Parameter(w))", "self.fc.kernel = nnx.Param(w.T)"),
        ("self.fc.weight = nn.Parameter(w, requires_grad=False)", "self.fc.kernel = Buffer(w.T)"),
        ("self.fc.bias = nn.Parameter(torch.ones(4))", "self.fc.bias = nnx.Param(jnp.ones(4))"),
        ("self.norm.weight = nn.Parameter(torch.ones(4))", "self.norm.scale = nnx.Param(jnp.ones(4))"),
        ("self.norm.eps = 0.5", "self.norm.epsilon = 0.5"),
        ("self.drop.p = 0.0", "self.drop.rate = 0.0"),
        ("self.fc.bias = None", "self.fc.bias = None self.fc.use_bias = False"),
        ("self.fc.register_parameter('bias', None)", "self.fc.bias = None self.fc.use_bias = False"),
        ("self.other.bias = self.fc.bias", "self.other.bias = self.fc.bias"),
        ("self.other.weight = self.fc.weight", "self.other.kernel = self.fc.kernel"),
        (
            "self.conv.weight = nn.Parameter(torch.ones(2, 4, 3))",
            "self.conv.kernel = nnx.Param(jnp.moveaxis(jnp.ones((2, 4, 3)), (0, 1), (-1, -2)))",
        ),
    ],
)
def test_a_layer_is_given_the_parameter_that_flax_reads(statement: str, expected: str) -> None:
    assert re.sub(r"\s+", "", held(statement)) == expected.replace(" ", "")


@pytest.mark.parametrize(
    "statement",
    [
        "self.fc.weight = nn.Parameter(w * 0.1)",
        "self.fc.bias = None",
        "self.other = nn.Linear(5, 4, bias=False); self.other.bias = nn.Parameter(torch.ones(4))",
        "self.conv.weight = nn.Parameter(torch.arange(24.0).reshape(2, 4, 3))",
        "self.norm.weight = nn.Parameter(torch.arange(4.0))",
        "self.norm.eps = 0.5",
        "self.norm.bias = None",
        "self.conv.stride = (2,)",
        "rate = len(self.steps); self.conv.dilation = (rate,)",
        "self.conv.dilation = 2; self.conv.padding = (self.conv.kernel_size[0] // 2 * 2,)",
        "self.steps[0] = nn.Linear(4, 4, bias=False)",
        "self.other.weight = self.fc.weight; self.other.bias = self.fc.bias",
    ],
)
def test_the_module_computes_with_it(statement: str) -> None:
    both = sides(SOURCE.format(statement=statement), "layer_parameters")
    assert both.gaps() == []
    x = np.random.default_rng(3).normal(size=(2, 6, 5))
    with jax.enable_x64(True):
        compare(both.torch.A().double().eval(), both.jax.A(rngs=nnx.Rngs(0)), [x])


@pytest.mark.parametrize(
    "statement",
    [
        "self.fc.weight = self.made",
        "self.conv.stride = w",
        "self.conv.stride = (w.sum(),)",
        "self.conv.padding = (kind,)",
        "self.conv.padding = 'same'",
        "self.conv.stride = (2,); print(self.conv.stride)",
        "del self.fc.bias",
        "delattr(self.fc, 'weight')",
        "[setattr(self.fc, n, nn.Parameter(w)) for n in ()]; setattr(self.fc, NAME, nn.Parameter(w))",
        "m = self.find(); m.weight = nn.Parameter(w)",
    ],
)
def test_what_is_not_sure_stays_and_is_said(statement: str) -> None:
    gaps = convert(SOURCE.format(statement=statement)).gaps
    assert [gap.code for gap in gaps] == ["unsure"]


@pytest.mark.parametrize(
    "statement", ["self.gain = nn.Parameter(w)", "self.fc.in_features = 3", "self.fc.mark = True", "del self.drop"]
)
def test_what_is_no_layers_own_stays_as_it_is(statement: str) -> None:
    code = held(statement)
    assert code.strip() == statement.replace("nn.Parameter", "nnx.Param")


def test_a_class_derived_from_a_layer_has_one_weight() -> None:
    text = """\
import torch
from torch import nn


class A(nn.Linear):
    def __init__(self):
        super().__init__(5, 4)
        self.weight = nn.Parameter(torch.arange(20.0).reshape(4, 5))
        self.bias = None

    def forward(self, x):
        return super().forward(x) + self.weight.sum()
"""
    both = sides(text, "derived_layer")
    assert both.gaps() == []
    with jax.enable_x64(True):
        compare(both.torch.A().double(), both.jax.A(rngs=nnx.Rngs(0)), [np.random.default_rng(3).normal(size=(2, 5))])


def test_attributes_asked_for_by_name_are_asked_for_under_flaxs() -> None:
    code = held("self.has = hasattr(self.fc, 'weight'), hasattr(self.fc, 'bias'), getattr(self.norm, 'weight')")
    assert code.strip() == "self.has = hasattr(self.fc, \"kernel\"), hasattr(self.fc, 'bias'), self.norm.scale"
    done = convert(
        "from torch import nn\n\n\ndef f(m: nn.Module):\n    return hasattr(m, 'weight') or hasattr(m, 'eps')\n"
    )
    assert not done.gaps
    assert "return hasattr(m, flax_name(m, \"weight\")) or hasattr(m, 'eps')" in done.code


@pytest.mark.parametrize(
    "read", ["m.weight.shape", "m.weight.abs().mean()", "torch.norm(m.weight)", "m.running_mean.sum()"]
)
def test_what_nobody_knows_may_be_a_layer_where_its_weight_is_read_as_a_tensor(read: str) -> None:
    (gap,) = convert(f"import torch\n\n\ndef f(m):\n    return {read}\n").gaps
    assert gap.code == "unsure" and "if this is a layer" in gap.reason


def test_a_weight_that_is_no_tensor_is_anybodys() -> None:
    assert not convert("import torch\n\n\ndef f(args, x):\n    return torch.exp(x) * args.weight\n").gaps


def test_a_bias_that_has_data_is_there() -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\ndef fill(m):\n    if isinstance(m, nn.Linear):\n"
        "        if hasattr(m.bias, 'data'):\n            m.bias.data.fill_(0.5)\n\n\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.body = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2, bias=False))\n        self.apply(fill)\n\n"
        "    def forward(self, x):\n        return self.body(x)\n"
    )
    done = convert(text)
    assert not done.gaps and "if m.bias is not None:" in done.code
    made: dict[str, Any] = {}
    exec(done.code, made)
    assert made["Net"](rngs=nnx.Rngs(0)).body.layers[0].bias[...].tolist() == [0.5] * 4


@pytest.mark.parametrize(
    ("layer", "settings"),
    [
        ("nn.MaxPool2d(3, stride=2)", ["m.padding = (1, 1)"]),
        ("nn.MaxPool2d(3, 2)", ["m.kernel_size = 2", "m.stride = 3", "m.dilation = 2", "m.ceil_mode = True"]),
        ("nn.AvgPool2d(3)", ["m.padding = 1", "m.count_include_pad = False", "m.ceil_mode = True"]),
    ],
)
def test_pooling_reads_its_settings_at_each_call(layer: str, settings: list[str]) -> None:
    stores = "\n                ".join(settings)
    both = sides(
        "from torch import nn\n\n\nclass Stem(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.body = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), {layer})\n\n"
        "    def forward(self, x):\n        return self.body(x)\n\n\n"
        "class Net(Stem):\n    def __init__(self):\n        super().__init__()\n        for m in self.modules():\n"
        f"            if isinstance(m, {layer.partition('(')[0]}):\n                {stores}\n",
        f"pooled_{len(settings)}",
    )
    assert both.gaps() == []
    with jax.enable_x64(True):
        x = np.random.default_rng(3).normal(size=(2, 2, 12, 13))
        compare(both.torch.Net().double(), both.jax.Net(rngs=nnx.Rngs(0)), [x])


@pytest.mark.parametrize(
    ("layer", "call", "more"),
    [
        ("nn.LayerNorm", "F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)", "5, elementwise_"),
        ("nn.GroupNorm", "F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)", "1, 5, "),
    ],
)
def test_a_norm_may_be_built_without_its_parameters(layer: str, call: str, more: str) -> None:
    both = sides(
        f"import torch.nn.functional as F\nfrom torch import nn\n\n\nclass Norm({layer}):\n"
        f"    def __init__(self, affine=True):\n        super().__init__({more}affine=affine)\n\n"
        f"    def forward(self, x):\n        return {call}\n\n\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.one, self.other = Norm(), Norm(affine=False)\n\n"
        "    def forward(self, x):\n        return self.one(x) + self.other(x)\n",
        layer.rpartition(".")[2].lower(),
    )
    assert both.gaps() == []
    with jax.enable_x64(True):
        x = np.random.default_rng(3).normal(size=(2, 5))
        compare(both.torch.Net().double(), both.jax.Net(rngs=nnx.Rngs(0)), [x])
