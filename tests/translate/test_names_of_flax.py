"""What a program keeps on parameters and layers under names of its own, and where Flax has such names, too."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert
from t2j_lsp.translate.rule.layer import OWN_MEANING

from .side_by_side import compare, randomized, sides

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
MARKED = """class M(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.log = nn.Parameter(torch.zeros(d))
        {statement}
        self.lin = nn.Linear(d, d)
        self.lin.bias._no_reinit = True

    def forward(self, x):
        if getattr(self.lin.bias, "_no_reinit", False):
            x = x * 2
        return self.lin(x) + self.log
"""


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("self.log._no_weight_decay = True", "self.log.set_metadata(_no_weight_decay=True)"),
        ('setattr(self.log, "group", d)', "self.log.set_metadata(group=d)"),
        ("self.log.options = {'lr': 0.1}", None),
        ("self.log._twin = torch.zeros(d)", None),
    ],
)
def test_what_a_program_keeps_on_a_parameter_is_metadata(statement: str, expected: str | None) -> None:
    done = convert(HEAD + MARKED.format(statement=statement))
    if expected is None:
        assert done.gaps
    else:
        assert not done.gaps
        assert expected in done.code
        assert 'getattr(self.lin.bias, "_no_reinit", False)' in done.code


def test_marked_parameters_are_trained_and_compiled_as_others_are() -> None:
    source = HEAD + MARKED.format(statement="self.log._no_weight_decay = True")
    both = sides(source, "marked")
    with jax.enable_x64(True):
        compare(randomized(both.torch.M(3)), both.jax.M(3, rngs=nnx.Rngs(0)), [np.ones((4, 3))], jit=True)


OF_LAYERS = {
    "a convolution's kernel": ("nn.Conv2d", 'self.register_buffer("kernel", torch.ones_like(self.weight))'),
    "a norm's scale": ("nn.LayerNorm", "self.scale = nn.Parameter(torch.zeros(3))"),
    "a batch norm's mean": ("nn.BatchNorm2d", 'self.register_buffer("mean", torch.zeros(3))'),
    "a linear layer's kernel": ("nn.Linear", "self.kernel = 3"),
}


@pytest.mark.parametrize(("base", "statement"), OF_LAYERS.values(), ids=OF_LAYERS)
def test_names_that_flax_gives_another_meaning_are_gaps(base: str, statement: str) -> None:
    text = "class M({}):\n    def __init__(self, *args):\n        super().__init__(*args)\n        {}\n"
    assert [gap.reason for gap in convert(HEAD + text.format(base, statement)).gaps] == [OWN_MEANING]


def test_a_mask_of_a_linear_layer_and_of_a_module_with_a_convolution_is_its_own() -> None:
    text = (
        "class A(nn.Linear):\n    def __init__(self, a, b):\n        super().__init__(a, b)\n"
        '        self.register_buffer("mask", torch.ones(b, a))\n\n    def forward(self, x):\n'
        "        return F.linear(x, self.mask * self.weight, self.bias)\n\n\n"
        "class B(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.conv = nn.Conv2d(1, 1, 1)\n"
        '        self.register_buffer("mask", torch.ones(1))\n\n    def forward(self, x):\n'
        "        return self.conv(x) * self.mask\n"
    )
    assert not convert(HEAD + text).gaps


@pytest.mark.parametrize("adding", ["self.net.extend([nn.Linear(3, 3), nn.ReLU()])", "self.net += [nn.Linear(3, 3)]"])
def test_a_list_that_layers_are_added_to_several_at_a_time_is_data(adding: str) -> None:
    text = (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = []\n"
        f"        {adding}\n        self.net = nn.Sequential(*self.net)\n\n"
        "    def forward(self, x):\n        return self.net(x)\n"
    )
    done = convert(HEAD + text)
    assert not done.gaps
    assert "self.net = nnx.List([])" in done.code


def test_a_helper_keeps_its_parameters_where_a_comprehension_has_its_name_for_an_item() -> None:
    text = "def f(x, n):\n    parts = torch.split(x, int(n), dim=1)\n    return sum([split * 2 for split in parts])\n"
    done = convert(HEAD + text)
    assert not done.gaps
    assert "def split(x, sizes, axis=0):" in done.code


@pytest.mark.parametrize("write", ["nn.init.zeros_(p)", "nn.init.xavier_uniform_(p)"])
def test_a_loop_over_parameters_by_name_writes_into_them(write: str) -> None:
    text = (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a, self.b = nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.ones(2, 3))\n"
        f"        for p in (self.a, self.b):\n            {write}\n\n"
        "    def forward(self, x):\n        for w in (self.a, self.b):\n            x = x + w.abs().sum()\n"
        "        return x\n"
    )
    both = sides(HEAD + text, "loop")
    assert not both.gaps()
    model = both.jax.M(rngs=nnx.Rngs(0))
    assert not (np.asarray(model.b) == 1).any()
    assert np.isfinite(model(np.ones(3))).all()
