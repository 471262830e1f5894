"""Parameters that properties of modules give: they are written into where they are, or the write is a gap."""

from __future__ import annotations

import pytest

from t2j_lsp.api import convert

TEXT = """import torch
import torch.nn as nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.scale = nn.Parameter(torch.ones(4))

    @property
    def weight(self):
        \"\"\"That of the layer.\"\"\"
        return self.linear.weight

    @property
    def gain(self):
        return self.scale

    @property
    def either(self):
        if self.training:
            return self.scale
        return self.linear.bias

    def forward(self, x):
        return self.linear(x) * self.scale


class Around(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Layer()

    @property
    def weight(self):
        return self.inner.weight

    def forward(self, x):
        return self.inner(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Layer()
        self.b = Around()
        {write}

    def forward(self, x):
        return self.a(x) + self.b(x) + self.a.weight.sum()
"""


@pytest.mark.parametrize(
    ("write", "wanted"),
    [
        ("nn.init.zeros_(self.a.weight)", "self.a.linear.kernel[...] = 0"),
        ("nn.init.constant_(self.a.gain, 2)", "self.a.scale[...] = 2"),
        ("self.b.weight.data.mul_(2)", "self.b.inner.linear.kernel[...] = self.b.inner.linear.kernel[...] * 2"),
        ("self.b.weight.data *= 2", "self.b.inner.linear.kernel[...] *= 2"),
        ("self.a.weight.data[0] = 1", "self.a.linear.kernel[...] = self.a.linear.kernel.T.at[0].set(1).T"),
    ],
)
def test_what_a_property_gives_is_written_into_where_it_is(write: str, wanted: str) -> None:
    translation = convert(TEXT.format(write=write))
    assert not translation.gaps
    assert f"        {wanted}\n" in translation.code


@pytest.mark.parametrize("write", ["nn.init.zeros_(self.a.either)", "self.a.either.data.zero_()"])
def test_a_write_into_one_of_several_is_a_gap(write: str) -> None:
    assert convert(TEXT.format(write=write)).gaps


PLAIN = """import torch
from typing import Any, Protocol, cast


class Weighted(Protocol):
    @property
    def w(self) -> torch.Tensor: ...


class Own:
    def __init__(self):
        self._w = torch.zeros(3, 3)

    @property
    def w(self):
        return self._w


def of_own(o: Own):
    {0}
    return o


def of_any(o: Any):
    o = cast(Weighted, o)
    {0}
    return o
"""


@pytest.mark.parametrize(
    "write", ["o.w.add_(1)", "o.w[0] = 1", "o.w[0] += 1", "o.w.data.fill_(2)", "torch.nn.init.zeros_(o.w)"]
)
def test_what_a_property_of_other_objects_gives_can_not_be_bound_anew(write: str) -> None:
    """A property has no setter, and what a protocol names may be anything."""
    lines = [gap.span.line for gap in convert(PLAIN.format(write)).gaps]
    assert lines == [20, 26]
