"""Attributes that hold something plain before they hold data: conversions are built, take weights and run under jit."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert
from t2j_lsp.translate import translate

from .side_by_side import compare, randomized, sides

MADE = "nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])"
NET = """\
import torch
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        {base}


class Net(Base):
    def __init__(self):
        super().__init__()
        {body}

    def fill(self):
        {fill}

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x * self.scale
"""
SCALE = "self.scale = torch.ones(3)"
FORMS = {
    "lists": ("pass", f"self.layers, self.scale = [], 2.0\n        self.layers = {MADE}", "pass"),
    "one value for several": (
        "pass",
        f"self.layers = self.scale = None\n        self.layers, self.scale = {MADE}, torch.ones(3)",
        "pass",
    ),
    "a list that becomes a ModuleList": (
        "pass",
        "self.layers = list()\n        self.layers = [nn.Linear(3, 3)]\n"
        "        self.layers = nn.ModuleList(self.layers)\n        self.scale = nn.Parameter(torch.ones(3))",
        "pass",
    ),
    "a base's": ("self.layers = ()\n        self.scale = None", f"self.layers = {MADE}\n        {SCALE}", "pass"),
    "a base's numbers": ("self.layers = 0\n        self.scale = 1.0", f"self.layers = {MADE}\n        {SCALE}", "pass"),
    "a method's": (
        "pass",
        f"self.fill()\n        self.layers = {MADE}\n        {SCALE}",
        "self.layers = []\n        self.scale = 0",
    ),
    "what a method replaces": (
        "pass",
        "self.layers: list = []\n        self.scale: float = 1\n        self.fill()",
        f"self.layers = {MADE}\n        self.scale = torch.full((3,), 2.0)",
    ),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_data_behind_plain_values_is_marked(form: tuple[str, str, str]) -> None:
    base, body, fill = form
    both = sides(NET.format(base=base, body=body, fill=fill), "plain")
    assert both.gaps() == []
    x = np.random.default_rng(0).normal(size=(4, 3))
    with jax.enable_x64(True):
        compare(randomized(both.torch.Net()), both.jax.Net(rngs=nnx.Rngs(0)), [x], jit=True)
    assert convert(both.translation.code).code == both.translation.code


def test_an_activation_behind_a_plain_value_is_no_data() -> None:
    code = translate(NET.format(base="pass", body="self.act = ''\n        self.act = nn.ReLU()", fill="pass")).code
    assert "self.act = nnx.relu\n" in code


def test_what_was_marked_where_it_stood_first_is_not_marked_again() -> None:
    body = "self.layers = []\n        self.scale = None\n        self.scale = torch.ones(3)\n"
    body += "        self.layers.append(nn.Linear(3, 3))\n        self.layers = nn.ModuleList(self.layers)"
    code = translate(NET.format(base="pass", body=body, fill="pass")).code
    assert "self.layers = nnx.List(self.layers)" in code and "self.scale = jnp.ones(3)" in code


def test_a_value_of_several_lines_may_come_behind() -> None:
    made = "(\n            nn.Linear(3, 3)\n            if kind and self.layers\n            else nn.ReLU()\n        )"
    body = f"self.layers, kind = [], 'a'\n        self.act = None\n        self.act = {made}"
    assert "self.act = " in convert(NET.format(base="pass", body=body, fill="pass")).code
