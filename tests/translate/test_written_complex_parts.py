"""Writes into the real or imaginary part of a complex tensor, which PyTorch keeps in its memory."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

WRITTEN = """import torch


def f(x: torch.Tensor):
    v = torch.fft.fft(x)
    {}
    return v + 1
"""


@pytest.mark.parametrize("body", ["v = v.real\n    v[:, 0] = 0", "v = v.imag\n    v.mul_(2)"])
def test_a_part_that_takes_the_place_of_its_tensor_shares_with_nothing(body: str) -> None:
    assert not convert(WRITTEN.format(body)).gaps


@pytest.mark.parametrize("body", ["r = v.real\n    r[:, 0] = 0", "w = v\n    r = w.imag\n    r.mul_(2)"])
def test_what_is_written_into_a_part_changes_its_tensor(body: str) -> None:
    assert convert(WRITTEN.format(body)).gaps
