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


HASH = "import torch\n\n\ndef mix(k):\n    return {value}\n\n\ndef f(x: torch.Tensor):\n    return x + {call}\n"


@pytest.mark.parametrize("value", ["((k >> 16) ^ k) * 0x45D9F3B", "k & 0xFFFFFFFF", "k << 40"])
def test_what_may_be_a_tensor_and_leaves_them_is_said(value: str) -> None:
    (gap,) = translate(HASH.format(value=value, call="1")).gaps
    assert "if k is a tensor" in gap.reason
    assert not translate(HASH.format(value=value, call="1").replace("(k)", "(k: int)")).gaps
    assert not translate(HASH.format(value=value, call="mix(3)")).gaps


@pytest.mark.parametrize("value", ["k * 73856093", "k + 4294967296", "((k >> 2) ^ k) * 31", "k & 0xFF"])
def test_what_may_be_a_number_of_any_kind_is_not(value: str) -> None:
    assert not translate(HASH.format(value=value, call="1")).gaps
