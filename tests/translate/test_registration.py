"""Buffers and parameters that are registered: under literal and computed names, and where they may be None."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

from .side_by_side import compare, sides

SOURCE = """\
import torch
import torch.nn as nn


class M(nn.Module):
    def __init__(self, d: int, shift: bool):
        super().__init__()
        mask = torch.ones(d)
        maybe = None
        if shift:
            maybe = mask
        {statement}
"""


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ('self.register_buffer("mask", mask)', "self.mask = Buffer(mask)"),
        ('self.register_buffer(name="mask", tensor=mask)', "self.mask = Buffer(mask)"),
        ('self.register_buffer("mask", mask, persistent=False)', "self.mask = Buffer(mask, persistent=False)"),
        ('self.register_buffer("mask", mask, shift)', "self.mask = Buffer(mask, persistent=shift)"),
        ('self.register_buffer("mask", None)', "self.mask = nnx.data(None)"),
        (
            'self.register_buffer("mask", mask if shift else None)',
            "self.mask = Buffer(mask) if shift else nnx.data(None)",
        ),
        ('self.register_buffer("mask", maybe)', "self.mask = nnx.data(None) if maybe is None else Buffer(maybe)"),
        ('self.register_buffer(f"mask{d}", mask)', 'setattr(self, f"mask{d}", Buffer(mask))'),
        (
            "keep = lambda name, value: self.register_buffer(name, value.to(torch.float32))",
            "keep = lambda name, value: setattr(self, name, Buffer(value.astype(jnp.float32)))",
        ),
        ('self.register_parameter("gain", nn.Parameter(mask))', "self.gain = nnx.Param(mask)"),
        ('self.register_parameter("gain", None)', "self.gain = nnx.data(None)"),
    ],
)
def test_a_registration_is_an_assignment(statement: str, expected: str) -> None:
    translation = translate(SOURCE.format(statement=statement), Options())
    assert not translation.gaps
    assert expected in " ".join(translation.code.split()).replace("( ", "(").replace(" )", ")")


@pytest.mark.parametrize(
    ("before", "none"),
    [
        ("", True),
        ("if weight is not None:\n            weight = torch.as_tensor(weight)", True),
        ("if shift:\n            weight = torch.ones(3)", True),
        ("if weight is None:\n            weight = torch.ones(3)", False),
        ("if weight is None and shift:\n            weight = torch.ones(3)", True),
        ("if not shift or weight is None:\n            raise ValueError(weight)", False),
        ("assert weight is not None", False),
        ("weight = torch.ones(3) if weight is None else weight", False),
        ("weight = weight if shift else torch.ones(3)", True),
    ],
)
def test_a_buffer_of_a_parameter_is_none_where_nothing_is_given(before: str, none: bool) -> None:
    source = f"""\
import torch
import torch.nn as nn


class M(nn.Module):
    def __init__(self, shift: bool, weight=None):
        super().__init__()
        {before}
        self.register_buffer("weight", weight)

    def forward(self, x):
        return torch.nn.functional.l1_loss(x, x, weight=self.weight)
"""
    code = translate(source, Options()).code
    expected = "nnx.data(None) if weight is None else Buffer(weight)" if none else "Buffer(weight)"
    assert f"self.weight = {expected}\n" in code


def test_a_buffer_behind_a_condition_that_it_is_given_is_one() -> None:
    source = SOURCE.replace("shift: bool", "shift: bool, weight=None")
    one = 'if weight is not None and d:\n            self.register_buffer("weight", weight)'
    other = 'if not weight:\n            pass\n        else:\n            self.register_buffer("weight", weight)'
    for statement in (one, other):
        assert "self.weight = Buffer(weight)\n" in translate(source.format(statement=statement), Options()).code


def test_an_attribute_that_may_be_none_is_passed_as_it_is() -> None:
    source = SOURCE.format(statement='self.register_buffer("mask", maybe)')
    source += "\n    def forward(self, x):\n        return torch.add(x, 1) if self.mask is None else f(x, self.mask)\n"
    assert "f(x, self.mask)" in translate(source, Options()).code


MADE = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class M(nn.Module):
    {declared}

    def __init__(self, shift: bool = {shift}):
        super().__init__()
        self.shift = shift
        {statement}

    def make(self):
        if self.shift:
            kernel = torch.ones(3, 1, 2, 2)
        else:
            kernel = None
        return kernel

    def forward(self, x):
        return x if self.kernel is None else F.conv2d(x, self.kernel, groups=x.shape[1])
"""


@pytest.mark.parametrize("declared", ["kernel: torch.Tensor", "rank = 4"])
@pytest.mark.parametrize("shift", [True, False])
@pytest.mark.parametrize(
    "statement",
    [
        'kernel = self.make()\n        self.register_buffer("kernel", kernel)',
        'self.register_buffer("kernel", self.make())',
    ],
)
def test_a_buffer_that_a_method_makes_is_none_where_that_gives_none(declared: str, shift: bool, statement: str) -> None:
    both = sides(MADE.format(declared=declared, shift=shift, statement=statement), "made_buffer")
    assert both.gaps() == []
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 4))
    with jax.enable_x64(True):
        module = both.jax.M(rngs=nnx.Rngs(0))
        assert (module.kernel is None) is not shift
        compare(both.torch.M().double(), module, [x], jit=True)


DECLARED = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class M(nn.Module):
    kernel: torch.Tensor

    def __init__(self):
        super().__init__()
        self.register_buffer("kernel", torch.ones(3, 1, 2, 2))

    def forward(self, x):
        return F.conv2d(x, self.kernel, groups=x.shape[1])
"""


def test_a_buffer_that_the_class_declares_as_a_tensor_is_still_one() -> None:
    """JAX's primitives take no Variable under jit: what a helper is given is the array in it."""
    both = sides(DECLARED, "declared_buffer")
    assert both.gaps() == []
    with jax.enable_x64(True):
        x = np.random.default_rng(0).normal(size=(2, 3, 4, 4))
        compare(both.torch.M().double(), both.jax.M(rngs=nnx.Rngs(0)), [x], jit=True)


def test_methods_that_ask_each_other_are_looked_at_once() -> None:
    source = """\
import torch
import torch.nn as nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        mask = self.one(3)
        self.register_buffer("mask", mask)

    def one(self, n):
        return self.other(n - 1) if n else torch.ones(2)

    def other(self, n):
        made = self.one(n)
        return made
"""
    translation = translate(source, Options())
    assert not translation.gaps and "self.mask = Buffer(mask)" in translation.code


SPLIT = """
import torch
from torch import nn


class Layers(nn.Module):
    def __init__(self, dim, shift):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        mask = torch.zeros(dim) if shift else None
        self.register_buffer("mask", mask)

    def masked(self, x, mask=None):
        return x if mask is None else x + mask


class Block(Layers):
    def forward(self, x):
        return self.masked(self.norm(x), mask=self.mask)
"""


def test_a_buffer_of_the_base_that_may_be_none_is_passed_as_it_is() -> None:
    """`self.mask[...]` failed where it is None, and so did `Buffer(None)`, in silence."""
    code = translate(SPLIT, Options()).code
    assert "self.mask = nnx.data(None) if mask is None else Buffer(mask)" in code
    assert "mask=self.mask)" in code
