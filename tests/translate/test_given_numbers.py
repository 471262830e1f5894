"""Arrays that are given for what is said to be an int: noted where the function asks for the value."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """\
import torch
from torch import Tensor


def repeat(x: Tensor, times: int, scale: float = 1.0):
    {body}


def outer(x: Tensor, times: int):
    return repeat(x, times)


def of_each(rows: Tensor):
    return torch.stack([{call} for row in rows])
"""
COUNTED = "return x * int(times)"


@pytest.mark.parametrize("call", ["repeat(row, row[0])", "repeat(row, times=row[0])", "outer(row, row[0])"])
@pytest.mark.parametrize(
    "body",
    [
        COUNTED,
        "return sum(x for _ in range(times))",
        "while times > 0:\n        x, times = x * 2, times - 1\n    return x",
    ],
)
def test_a_value_that_is_asked_for_is_noted_where_an_array_is_given(body: str, call: str) -> None:
    notes = [f for f in convert(TEXT.format(body=body, call=call)).notes if "is said to be of type int" in f.reason]
    assert [f.code for f in notes] == ["value-needed"]


@pytest.mark.parametrize(
    ("body", "call"),
    [
        ("return x * times", "repeat(row, row[0])"),
        ("return x if times is None else x * times", "repeat(row, row[0])"),
        (COUNTED, "repeat(row, 3)"),
        (COUNTED, "repeat(row, row.shape[0])"),
        ("return x * int(times) * scale", "repeat(row, 2, row[0])"),
    ],
)
def test_what_needs_no_value_or_is_no_array_is_not(body: str, call: str) -> None:
    assert not [f for f in convert(TEXT.format(body=body, call=call)).notes if "is said to be" in f.reason]
