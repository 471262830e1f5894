"""``requires_grad = False`` of tensors that have no gradients."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

FLAGS = """\
import torch
from torch import nn


class Encoding(nn.Module):
    def __init__(self, width):
        super().__init__()
        pe = torch.zeros(9, width)
        pe.{slip} = False
        pe[:, 0::2] = 1.0
        self.pe = pe
        self.pe.requires_grad = False

    def forward(self, x):
        {before}return x + self.pe[: x.size(1)]
"""


@pytest.mark.parametrize("slip", ["requires_grad", "require_grad"])
def test_a_flag_of_a_tensor_that_asks_for_no_gradients_goes(slip: str) -> None:
    done = convert(FLAGS.format(slip=slip, before=""))
    assert not done.gaps and "grad" not in done.code, done.gaps


@pytest.mark.parametrize("before", ["x.requires_grad = False\n        ", "self.pe.requires_grad_()\n        "])
def test_a_flag_of_what_may_have_gradients_stays(before: str) -> None:
    assert convert(FLAGS.format(slip="requires_grad", before=before)).gaps
