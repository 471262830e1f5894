"""Bases of layers in ``isinstance``: ``nn.modules.batchnorm._BatchNorm``, which all batch norms derive from."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
import torch
from flax import nnx

from t2j_lsp import convert
from t2j_lsp.plugins import load_rules
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import BASES

load_rules()
SOURCE = """\
import torch
import torch.nn as nn
from torch.nn.modules.batchnorm import _BatchNorm


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.up = nn.ConvTranspose1d(4, 4, 2)
        self.bn = nn.BatchNorm2d(4)
        self.instance = nn.InstanceNorm2d(4, affine=True)
        self.group = nn.GroupNorm(2, 4)
        self.fc = nn.Linear(4, 2)
        for m in self.modules():
            if isinstance(m, {base}):
                nn.init.constant_(m.weight, 2.0)


def is_one(m):
    return isinstance(m, {base})
"""
LAYERS_OF = ("conv", "up", "bn", "instance", "group", "fc")
FOUND = {
    "_BatchNorm": {"bn"},
    "torch.nn.modules.batchnorm._BatchNorm": {"bn"},
    "(_BatchNorm, nn.GroupNorm)": {"bn", "group"},
    "nn.modules.instancenorm._InstanceNorm": {"instance"},
    "nn.modules.batchnorm._NormBase": {"bn", "instance"},
    "nn.modules.conv._ConvNd": {"conv", "up"},
    "nn.modules.conv._ConvTransposeNd": {"up"},
}


@pytest.mark.jax
@pytest.mark.parametrize("base", FOUND)
def test_the_same_layers_are_found_as_in_pytorch(base: str) -> None:
    source = SOURCE.format(base=base)
    done = convert(source)
    assert not done.gaps and "import torch" not in done.code, done.gaps
    made: dict[str, Any] = {}
    torch_side: dict[str, Any] = {}
    exec(done.code, made)
    exec(source, torch_side)
    net, other = made["Net"](rngs=nnx.Rngs(0)), torch_side["Net"]()
    assert {name for name in LAYERS_OF if made["is_one"](getattr(net, name))} == FOUND[base]
    assert {name for name in LAYERS_OF if torch_side["is_one"](getattr(other, name))} == FOUND[base]
    for name in LAYERS_OF:
        layer = getattr(net, name)
        weight = layer.kernel if hasattr(layer, "kernel") else layer.scale
        assert bool(jnp.all(weight[...] == 2.0)) is (name in FOUND[base])


@pytest.mark.parametrize("name", BASES)
def test_the_layers_of_a_base_are_pytorchs(name: str) -> None:
    module, _, last = name.rpartition(".")
    base = getattr(__import__(module, fromlist=[last]), last)
    assert all(issubclass(getattr(torch.nn, layer.rpartition(".")[2]), base) for layer in BASES[name].layers)
    others = set(LAYERS) - set(BASES[name].layers) - {"torch.nn.SyncBatchNorm"}
    classes = [getattr(torch.nn, n.rpartition(".")[2], None) for n in others if n.count(".") == 2]
    assert not any(isinstance(one, type) and issubclass(one, base) for one in classes)


def test_a_class_that_derives_from_such_a_base_stays_marked() -> None:
    source = "from torch.nn.modules.batchnorm import _BatchNorm\n\n\nclass Own(_BatchNorm):\n    pass\n"
    assert convert(source).gaps


TYPES = """\
import torch
from torch import nn

{before}

def init(m):
    if {test}:
        nn.init.ones_(m.weight)


net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.LayerNorm(4), nn.Linear(4, 2))
net.apply(init)
"""


@pytest.mark.parametrize(
    ("before", "test", "wanted"),
    [
        ("", "type(m) == nn.Linear", "isinstance(m, nnx.Linear)"),
        ("", "type(m) is nn.Linear", "isinstance(m, nnx.Linear)"),
        ("", "m.__class__ is nn.Linear", "isinstance(m, nnx.Linear)"),
        ("", "type(m) in (nn.Linear, nn.LayerNorm)", "isinstance(m, (nnx.Linear, nnx.LayerNorm))"),
        ("", "type(m) in [nn.Linear]", "isinstance(m, nnx.Linear)"),
        (
            "",
            "type(m) == nn.Linear or type(m) == nn.LayerNorm",
            "isinstance(m, nnx.Linear) or isinstance(m, nnx.LayerNorm)",
        ),
        ("KINDS = (nn.Linear,)\n", "type(m) in KINDS", "isinstance(m, KINDS)"),
        ("KINDS = (nn.Linear, nn.LayerNorm)\n", "isinstance(m, KINDS)", "isinstance(m, KINDS)"),
    ],
)
def test_types_that_are_compared_are_those_of_flax(before: str, test: str, wanted: str) -> None:
    """Layers are made as Flax's own where that is shorter: the class that stands for PyTorch's is no type of theirs."""
    translation = convert(TYPES.format(before=before, test=test))
    names: dict[str, Any] = {}
    exec(translation.code, names)
    assert not translation.gaps and f"if {wanted}:" in translation.code
    assert not before or "KINDS = (nnx.Linear," in translation.code
    ones = [bool((layer.kernel[...] == 1).all()) for layer in (names["net"].layers[0], names["net"].layers[3])]
    assert ones == [True, True]


@pytest.mark.parametrize(
    ("before", "test"),
    [
        ("class Own(nn.Linear):\n    pass\n\n", "type(m) == nn.Linear"),
        ("KINDS = [nn.Linear]\n", "type(m) in KINDS"),
    ],
)
def test_types_of_which_others_derive_are_gaps(before: str, test: str) -> None:
    assert any(gap.code == "unsure" for gap in convert(TYPES.format(before=before, test=test)).gaps)


TOGETHER = """\
import torch
import torch.nn as nn


def start(m):
    if isinstance(m, (nn.Linear, nn.Conv1d, nn.Conv2d)):
        nn.init.constant_(m.weight, 0.5)
{more}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv1d(3, 4, 3)
        self.b = nn.Conv2d(3, 4, 3)
        self.apply(start)
"""


def test_kinds_that_are_asked_for_together_are_one_of_flax() -> None:
    code = convert(TOGETHER.format(more="")).code
    assert "isinstance(m, (nnx.Linear, nnx.Conv))" in code
    assert convert(code).code == code
    names: dict[str, Any] = {}
    exec(code, names)
    net = names["Net"](rngs=nnx.Rngs(0))
    assert float(net.a.kernel[...].min()) == float(net.b.kernel[...].max()) == 0.5


def test_kinds_that_are_told_apart_stay_apart() -> None:
    code = convert(TOGETHER.format(more="    if isinstance(m, nn.Conv1d):\n        nn.init.zeros_(m.weight)\n")).code
    assert "isinstance(m, (nnx.Linear, Conv1d, Conv2d))" in code
    names: dict[str, Any] = {}
    exec(code, names)
    net = names["Net"](rngs=nnx.Rngs(0))
    assert float(jnp.abs(net.a.kernel[...]).max()) == 0.0
    assert float(net.b.kernel[...].min()) == 0.5


PARTS = {
    "Conv2d": "self._conv_forward(x, self.weight, self.bias)",
    "BatchNorm2d": "self._check_input_dim(x)",
    "TransformerEncoderLayer": "self._ff_block(x)",
    "TransformerDecoderLayer": "self._mha_block(x, x, None, None)",
    "MultiheadAttention": "super().forward(x, x, x) if self._qkv_same_embed_dim else x",
    "LSTM": "self.permute_hidden(x, None)",
}


@pytest.mark.parametrize("layer", PARTS)
def test_what_a_layer_keeps_for_itself_is_said(layer: str) -> None:
    body = f"import torch\nfrom torch import nn\n\n\nclass Own(nn.{layer}):\n"
    body += "    def forward(self, x):\n        return {}\n"
    assert len(convert(body.format(PARTS[layer])).gaps) == 1
    own = body.format("self._twice(x)") + "\n    def _twice(self, x):\n        return torch.exp(x) * 2\n"
    assert not convert(own).gaps


LOSS = """import torch
from torch import nn
from torch.nn import functional as F


class Own(nn.CrossEntropyLoss):
    def forward(self, x, y):
        return F.cross_entropy(x, y, weight=self.weight, reduction=self.reduction)
"""


@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 3.0]])
def test_a_loss_may_be_built_without_weights(weight: list[float] | None) -> None:
    done = convert(LOSS)
    assert not done.gaps
    sides: list[dict[str, Any]] = [{}, {}]
    exec(LOSS, sides[0])
    exec(done.code, sides[1])
    x, y = torch.arange(12.0).reshape(4, 3).sin(), torch.tensor([0, 2, 1, 1])
    wanted = sides[0]["Own"](None if weight is None else torch.tensor(weight))(x, y)
    got = sides[1]["Own"](None if weight is None else jnp.array(weight), rngs=nnx.Rngs(0))
    assert float(got(jnp.asarray(x), jnp.asarray(y))) == pytest.approx(wanted.item(), rel=1e-5)


BYPASSED = """\
import torch
from torch import nn
from torch.nn import functional as F


class Noisy({base}):
    def __init__(self, i, o):
        {init}
        self.mu = nn.Parameter(torch.randn(o, i))
{body}
"""
WEIGHT = "\n    @property\n    def weight(self):\n        return self.mu * 2\n\n    bias = None\n"
OWN = "\n    def forward(self, x):\n        return F.linear(x, self.mu)\n"
LEFT_OUT = "nn.Module.__init__(self)"


@pytest.mark.parametrize(
    ("base", "init", "body"),
    [
        ("nn.Linear", LEFT_OUT, WEIGHT),
        ("nn.Linear", "super(nn.Linear, self).__init__()", WEIGHT),
        ("nn.Linear", f"{LEFT_OUT}\n        self.weight = nn.Parameter(torch.randn(o, i))", ""),
        ("nn.Linear", f"{LEFT_OUT}\n        self.weight = nn.Parameter(torch.randn(o, i))", OWN),
        ("nn.Linear", LEFT_OUT, OWN.replace("self.mu)", "self.mu) + super().forward(x)")),
        ("nn.Sequential", LEFT_OUT, ""),
        ("nn.Conv2d", "super(nn.Conv2d, self).__init__()", OWN),
    ],
)
def test_a_layer_whose_constructor_is_left_out_is_a_gap(base: str, init: str, body: str) -> None:
    """Its forward pass reads what only the constructor makes in Flax."""
    gaps = convert(BYPASSED.format(base=base, init=init, body=body)).gaps
    assert any("constructor" in gap.reason for gap in gaps)


@pytest.mark.parametrize(
    ("base", "init", "body"),
    [
        ("nn.Linear", LEFT_OUT, OWN),
        ("nn.Linear", "super().__init__(i, o)", ""),
        ("nn.Linear", "super(Noisy, self).__init__(i, o)", OWN),
        ("nn.Module", LEFT_OUT, OWN),
    ],
)
def test_what_needs_nothing_of_the_layer_converts(base: str, init: str, body: str) -> None:
    assert not convert(BYPASSED.format(base=base, init=init, body=body)).gaps
