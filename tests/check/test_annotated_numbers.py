"""Parameters that are annotated as one of several kinds of numbers are given a number, not an array."""

from __future__ import annotations

from operator import getitem
from typing import Any, Union

import pytest
import torch

from t2j_lsp.check.inputs import ArraySpec
from t2j_lsp.check.workers.torch_side.annotated import by_annotation
from t2j_lsp.check.workers.torch_side.guess import Guesser

SPEC = ArraySpec("float32", (2, 3))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int | float, 2),
        (float | int, 0.5),
        (getitem(Union, (int, float)), 2),
        (int | float | None, 2),
        (float | None, 0.5),
        ("Optional[float]", 0.5),
        ("int | float", 2),
        ("Union[float, int]", 0.5),
        ("typing.Union[int, bool, None]", 2),
    ],
)
def test_a_union_of_numbers_is_the_first_of_them(kind: Any, value: Any) -> None:
    assert by_annotation(kind, SPEC) == value


@pytest.mark.parametrize("kind", [int | torch.Tensor, "int | Tensor", "Tensor", torch.Tensor | None, "list | float"])
def test_what_may_be_a_tensor_is_one(kind: Any) -> None:
    assert by_annotation(kind, SPEC) is SPEC


@pytest.mark.parametrize("text", ["list[int] | torch.Tensor", "'list[int] | torch.Tensor'"])
def test_the_text_of_a_text_says_the_same(text: str) -> None:
    """A slice has annotations as texts, and so may the program have."""

    def counts_of(counts: object) -> object:
        return counts

    counts_of.__annotations__["counts"] = text
    assert isinstance(next(iter(Guesser(counts_of))).args[0], ArraySpec)
