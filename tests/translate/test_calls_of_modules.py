"""Which method of a class is the one that a call of its instances runs."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert

from .side_by_side import compare, sides

HEAD = "import torch\nfrom abc import ABC, abstractmethod\nfrom torch import nn\n\n\n"
ASKED = "class Asked(ABC):\n    @abstractmethod\n    def __call__(self, x):\n        ...\n\n\n"
MIXED = "class Mixed:\n    def __call__(self, x):\n        return self.forward(x) + 1\n\n\n"
OWN = MIXED.replace("class Mixed:", "class Own(nn.Module):")
NET = "class Net({}):\n    def forward(self, x):\n        return torch.relu(x)\n"


@pytest.mark.parametrize(
    ("bases", "name"),
    [
        ("nn.Module, Asked", "__call__"),
        ("nn.Module, Mixed", "__call__"),
        ("Mixed, nn.Module", "forward"),
        ("Own", "forward"),
    ],
)
def test_what_comes_before_the_module_decides(bases: str, name: str) -> None:
    code = convert(HEAD + ASKED + MIXED + OWN + NET.format(bases)).code
    assert f"def {name}(self, x)" in code[code.index("class Net") :]


@pytest.mark.parametrize(("line", "gap"), [("made.kept = kwargs", True), ("cls.kept = kwargs", False), ("pass", False)])
def test_what_new_keeps_has_no_place_in_nnx(line: str, gap: bool) -> None:
    text = (
        "class Base(nn.Module):\n    def __new__(cls, *args, **kwargs):\n"
        f"        made = super().__new__(cls)\n        {line}\n        return made\n"
    )
    assert [g.name for g in convert(HEAD + text).gaps] == ["torch.nn.Module.__new__"] * gap


@pytest.mark.parametrize(
    ("parameters", "given", "reason"),
    [
        ("a, b=None", "nn.Linear(a, a) if b is None else super().__new__(cls)", "NNX runs __init__ on whatever"),
        ("a, b=None", "super().__new__(cls)", "rngs is one of them"),
        ("a, **kwargs", "super().__new__(cls)", ""),
    ],
)
def test_new_that_chooses_or_has_no_place_for_rngs_is_a_gap(parameters: str, given: str, reason: str) -> None:
    text = (
        f"class Net(nn.Module):\n    def __new__(cls, {parameters}):\n        return {given}\n\n"
        "    def __init__(self, a, b=None):\n        super().__init__()\n        self.fc = nn.Linear(a, a)\n"
    )
    reasons = [g.reason for g in convert(HEAD + text).gaps]
    assert len(reasons) == bool(reason) and all(reason in finding for finding in reasons)


ASKS = "import inspect\n\n\ndef asked(kwargs, cls):\n    return kwargs, inspect.signature(cls).parameters\n"


@pytest.mark.parametrize(
    ("line", "gap"),
    [
        ("inspect.signature(nn.Linear)", True),
        ("inspect.signature(Net)", True),
        ("asked({}, nn.Linear)", True),
        ("asked(kwargs={}, cls=Net)", True),
        ("inspect.signature(nn.Linear.__init__)", False),
        ("asked({}, print)", False),
    ],
)
def test_the_signature_of_a_flax_class_says_nothing(line: str, gap: bool) -> None:
    net = "\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x.clone()\n"
    gaps = [g.name for g in convert(HEAD + ASKS + net + f"\n\nfound = {line}\n").gaps]
    assert ("inspect.signature" in gaps) is gap


LAYERS = """
class Wide(nn.Conv2d):
    def __init__(self, a, b, bias=True, device=None, dtype=None):
        super().__init__(a, b, 3, 1, 0, bias=bias, device=device, dtype=dtype)

    def forward(self, x):
        return super().forward(x) * 2


class Norm(nn.LayerNorm):
    def __init__(self, size):
        super(Norm, self).__init__(size, eps=1e-6, device=None)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = Wide(2, 3), Norm(4)

    def forward(self, x):
        return self.norm(self.conv(x))
"""


def test_a_layers_own_constructor_takes_no_device() -> None:
    both = sides(HEAD + LAYERS, "own_layers")
    assert both.gaps() == []
    x = np.random.default_rng(0).normal(size=(2, 2, 6, 6))
    with jax.enable_x64(True):
        compare(both.torch.Net().double(), both.jax.Net(rngs=nnx.Rngs(0)), [x], jit=True)
