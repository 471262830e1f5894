"""Python's own functions and operators that ask arrays in lists whether they are true: said, as it fails under jit."""

from __future__ import annotations

import pytest

from t2j_lsp.api import convert

HEAD = "import torch\n\n\ndef f(x: torch.Tensor, y: torch.Tensor, xs: list[torch.Tensor], n: int):\n    return "
SAID = (
    "x if all(torch.isreal(v.flatten()[0]) for v in (x, y)) else y",
    "any([x.sum() > 0, y.sum() > 0])",
    "all(map(torch.isnan, xs))",
    "sorted([x.sum(), y.sum()])",
    "list(filter(lambda v: v.sum() > 0, xs))",
    "x in xs",
    "x.sum() not in (1, 2)",
    "0 < x.sum() < 3",
    "xs.index(x)",
    "(x, y) == (y, x)",
)
SILENT = (
    "x if all(v.dim() == 2 for v in xs) else y",
    "x if any([n > 3, n < 1]) else y",
    "sorted([x.shape[0], n])",
    "min(xs, key=len)",
    "min(xs, key=lambda v: v.shape[0])",
    "x if n in (1, 2) else y",
    "x if 0 < n < 3 else y",
    "x.shape == y.shape",
    "x if (x.ndim, n) == (2, 3) else y",
    "x if [1, 2].index(n) else y",
)


def is_said(expression: str) -> bool:
    return any(
        f.code == "tensor-branch" and "asks each" in f.reason for f in convert(HEAD + expression + "\n").findings
    )


@pytest.mark.parametrize("expression", SAID)
def test_what_asks_arrays_is_said(expression: str) -> None:
    assert is_said(expression)


@pytest.mark.parametrize("expression", SILENT)
def test_what_asks_numbers_is_not(expression: str) -> None:
    assert not is_said(expression)
