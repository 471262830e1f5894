"""Arguments that are made up for searches of sequences: they are sorted, or there are none."""

from __future__ import annotations

from t2j_lsp import convert
from t2j_lsp.contract import VerdictKind

from .conftest import TORCH, Check

FOUND = "\ndef f(edges: torch.Tensor, x: torch.Tensor):\n    return torch.searchsorted({}, x) - x.sum()\n"


def test_nobody_is_accused_of_what_a_search_finds_in_disorder(check: Check) -> None:
    torch = FOUND.format("edges")
    assert check(torch, convert(TORCH + torch).code).verdict is not VerdictKind.DIFFERENT


def test_a_search_of_what_the_program_sorts_is_checked(check: Check) -> None:
    torch = FOUND.format("edges.sort(dim=-1).values")
    jax = convert(TORCH + torch).code
    assert check(torch, jax).verdict is VerdictKind.EQUIVALENT
    assert check(torch, jax.replace("- x.sum()", "+ x.sum()")).verdict is VerdictKind.DIFFERENT
