"""``detach_()`` of a parameter freezes it: JAX's arrays have no such flag, and writing the same value does not."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

SOURCE = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.gain = nn.Parameter(torch.ones(3))
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        return self.fc(x) * self.gain + self.mean

    def change(self):
        {body}


def f(x: torch.Tensor):
    y = x * 2
    y.detach_()
    return y
"""


@pytest.mark.parametrize(
    "body",
    [
        "self.fc.bias.detach_()",
        "self.fc.weight.detach_()",
        "self.gain.detach_()",
        "for name, p in self.named_parameters():\n            if 'fc' in name:\n                p.detach_()",
    ],
)
def test_a_parameter_is_frozen_by_it(body: str) -> None:
    gaps = convert(SOURCE.format(body=body)).gaps
    assert len(gaps) == 1 and "freezes a parameter" in gaps[0].reason


@pytest.mark.parametrize("body", ["self.mean.detach_()", "mean = self.mean * 2\n        mean.detach_()"])
def test_others_have_no_gradient_or_are_values(body: str) -> None:
    result = convert(SOURCE.format(body=body))
    assert not result.gaps and "y = jax.lax.stop_gradient(y)" in result.code
