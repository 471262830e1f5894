"""Attributes that are None at first and hold layers later, of which some become functions: `nnx.jit` takes them."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from .side_by_side import compare, sides

SOURCE = """
import torch
from torch import nn


class M(nn.Module):
    def __init__(self, a: bool, b: bool):
        super().__init__()
        self.layer{annotation} = None
        if a:
            self.layer = {one}
        elif b:
            self.layer = {other}

    def forward(self, x):
        return x if self.layer is None else self.layer(x)
"""


@pytest.mark.parametrize("annotation", ["", ": nn.Module | None"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("nn.ReLU()", "nn.GELU()"),
        ("nn.AvgPool2d(2, ceil_mode=True)", "nn.MaxPool2d(2)"),
        ("nn.BatchNorm2d(3)", "nn.Tanh()"),
        ("nn.AvgPool2d(3)", "nn.Conv2d(3, 3, 3)"),
        ("nn.Softmax(1)", "nn.ReLU()"),
    ],
)
def test_what_was_none_at_first_runs_under_jit(one: str, other: str, annotation: str) -> None:
    both = sides(SOURCE.format(one=one, other=other, annotation=annotation), "none_first")
    assert both.gaps() == []
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 5))
    with jax.enable_x64(True):
        for given in ((True, False), (False, True), (False, False)):
            compare(both.torch.M(*given).double(), both.jax.M(*given, rngs=nnx.Rngs(0)), [x], jit=True)


def test_only_functions_leave_none_as_it_is() -> None:
    code = sides(SOURCE.format(one="nn.ReLU()", other="nn.GELU()", annotation=""), "functions").translation.code
    assert "self.layer = None\n" in code and "self.layer = nnx.relu\n" in code
    code = sides(SOURCE.format(one="nn.ReLU()", other="nn.Conv2d(3, 3, 3)", annotation=""), "mixed").translation.code
    assert "self.layer = nnx.data(None)\n" in code and "self.layer = ReLU()\n" in code
