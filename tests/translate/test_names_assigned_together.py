"""Names that are assigned together: one of them that is written into since still says that the others are there."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """import torch


def f(x, n, flag):
    if flag:
        table = torch.zeros(3, 3)
        p = x.to(torch.float32)
    for i in range(n):
        if {asked}:
            table[0, 0] = x.sum() + i
            x = torch.add(p, x) + table
    return x
"""


def test_a_write_into_one_of_them_takes_nothing_away() -> None:
    assert not convert(TEXT.format(asked="flag")).gaps


@pytest.mark.parametrize("asked", ["flag", "n"])
def test_what_python_would_not_find_is_no_defect_of_the_conversion(asked: str) -> None:
    assert "defect" not in {finding.code for finding in convert(TEXT.format(asked=asked)).findings}
