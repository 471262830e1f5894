"""Buffers and parameters that are registered: under literal and computed names, and where they may be None."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

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
