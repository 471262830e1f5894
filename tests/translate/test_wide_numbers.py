"""Integers that need 64 bits, which JAX has with x64 alone."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

WIDE = {
    "a mask": "(x ^ (x << 16)) & 0xFF0000FF",
    "a shift of everything": "x.to(torch.int64) << 30",
    "a hash": "x.long() * 73856093",
    "a modulus that is computed": "x.long() % (2**61 - 1)",
}
NARROW = {
    "a mask": "x & 0x3FF",
    "a shift": "(x.long() << 8) | 3",
    "a small factor": "x.long() * 255",
    "floats": "x.float() * 4294967296 + x.sigmoid() * 2**31",
}


def source(value: str) -> str:
    return f"import torch\n\n\ndef f(x: torch.Tensor):\n    return {value}\n"


@pytest.mark.parametrize("value", WIDE.values(), ids=WIDE)
def test_what_leaves_32_bits_is_said(value: str) -> None:
    (gap,) = translate(source(value)).gaps
    assert "convert with x64" in gap.reason
    assert not translate(source(value), Options(x64=True)).gaps


@pytest.mark.parametrize("value", NARROW.values(), ids=NARROW)
def test_what_stays_in_them_is_not(value: str) -> None:
    assert not translate(source(value)).gaps
