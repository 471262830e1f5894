"""Printed text as what is compared of it: the words, with a place for each number, and the numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf|nan)(?![\w])")
_ARRAY = re.compile(
    r"\b(?:tensor|Array|array)\(([^()]*?)(?:,\s*(?:grad_fn|dtype|device|requires_grad|size|weak_type)=[^()]*?)*\)"
)
_SAME = (
    (re.compile(r"\btorch\.Size\(\[(.*?)\]\)"), r"(\1)"),
    (re.compile(r"Parameter containing:\s*"), ""),
    (re.compile(r"\b(?:torch|jnp|jax\.numpy)\.(?=u?int\d|b?float\d|bool)"), ""),
    (re.compile(r"\bdevice\(type='(\w+)'(?:, index=0)?\)|\b(cpu|cuda):0\b"), r"\1\2"),
    (re.compile(r"\bint(?:32|64)\b"), "int"),
    (re.compile(r"\bfloat(?:32|64)\b"), "float"),
    (re.compile(r",\)"), ")"),
    (re.compile(r",(?=\s)"), " "),
    (re.compile(r"\s+"), " "),
    (re.compile(r"(?<=[\[(]) | (?=[\])])"), ""),
)
"""What frameworks write differently, in one form. Commas in lists and blanks are the formatter's affair."""


@dataclass(frozen=True)
class PrintedNumber:
    """A number in a text, and by how much its last digit stands for: 0 for an integer."""

    value: float
    digit: float


@lru_cache(maxsize=65536)
def parts(text: str) -> tuple[str, tuple[PrintedNumber, ...]]:
    """The text with ``#`` for each number, and the numbers."""
    for pattern, new in ((_ARRAY, r"\1"), *_SAME):
        text = pattern.sub(new, text)
    numbers: list[PrintedNumber] = []

    def hole(match: re.Match[str]) -> str:
        numbers.append(_number(match[0]))
        return "#"

    return _NUMBER.sub(hole, text).strip(), tuple(numbers)


def _number(text: str) -> PrintedNumber:
    mantissa, _, exponent = text.lower().partition("e")
    whole = "." not in mantissa and not exponent
    if whole or "n" in mantissa:
        return PrintedNumber(float(text), 0.0)
    decimals = len(mantissa.partition(".")[2])
    return PrintedNumber(float(text), 10.0 ** (int(exponent or 0) - decimals))
