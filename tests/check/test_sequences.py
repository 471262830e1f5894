"""Arguments that are made up for searches of sequences: they are sorted, or there are none."""

from __future__ import annotations

from t2j_lsp.contract import VerdictKind

from .conftest import Check

FOUND = "def f(edges: {kind}, x: {kind}):\n    return {search} - {other}\n"


def test_nobody_is_accused_of_what_a_search_finds_in_disorder(check: Check) -> None:
    torch = FOUND.format(kind="torch.Tensor", search="torch.searchsorted(edges, x)", other="x.sum()")
    jax = FOUND.format(kind="jax.Array", search="jnp.searchsorted(edges, x, method='compare_all')", other="x.sum()")
    assert check(torch, jax).verdict is not VerdictKind.DIFFERENT


def test_a_search_of_what_is_sorted_in_the_program_is_checked(check: Check) -> None:
    torch = FOUND.format(kind="torch.Tensor", search="torch.searchsorted(edges.sort().values, x)", other="x.sum()")
    jax = FOUND.format(kind="jax.Array", search="jnp.searchsorted(jnp.sort(edges), x)", other="x.sum()")
    assert check(torch, jax).verdict is VerdictKind.EQUIVALENT
    assert check(torch, jax.replace("jnp.sort(edges), x", "jnp.sort(edges), x, side='right'")).verdict is not (
        VerdictKind.UNCHECKED
    )
    assert check(torch, jax.replace("- x.sum()", "+ x.sum()")).verdict is VerdictKind.DIFFERENT
