"""The factorisation by Bunch and Kaufman against LAPACK's, by way of torch: factors, pivots, info, solutions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp.rules.helpers import ldl


@pytest.mark.parametrize("size", [0, 1, 2, 5, 8])
@pytest.mark.parametrize("kind", ["real", "complex", "hermitian", "rounded", "zeros on the diagonal", "zero"])
def test_factors_and_solutions_are_lapacks(size: int, kind: str) -> None:
    """Rounded matrices have ties; zeros on the diagonal ask for blocks of two rows; zero has no pivot at all."""
    hermitian = kind == "hermitian"
    rng = np.random.default_rng(size)
    x = rng.normal(size=(3, size, size)) + (1j * rng.normal(size=(3, size, size)) if kind[0] in "ch" else 0)
    x = x + (x.conj() if hermitian else x).swapaxes(1, 2)
    x = {"rounded": np.round(x), "zero": 0 * x, "zeros on the diagonal": x * (1 - np.eye(size))}.get(kind, x)
    b = rng.normal(size=(3, size, 2)).astype(x.dtype)
    want = torch.linalg.ldl_factor_ex(torch.from_numpy(x), hermitian=hermitian)
    solution = torch.linalg.ldl_solve(want.LD, want.pivots, torch.from_numpy(b), hermitian=hermitian)
    with jax.enable_x64(True):
        got = jax.jit(ldl.ldl_factor_ex, static_argnums=1)(jnp.asarray(x), hermitian)
        np.testing.assert_allclose(got.LD, want.LD, atol=1e-11)
        np.testing.assert_array_equal(got.pivots, want.pivots)
        np.testing.assert_array_equal(got.info, want.info)
        if not want.info.any():
            solved = ldl.ldl_solve(got.LD, got.pivots, jnp.asarray(b), hermitian)
            np.testing.assert_allclose(solved, solution, rtol=1e-7, atol=1e-8)


def test_factors_without_info_are_the_same() -> None:
    x = jnp.array([[1.0, 2.0], [2.0, 1.0]])
    factors = ldl.ldl_factor(x)
    assert factors._fields == ("LD", "pivots") and factors.pivots.tolist() == ldl.ldl_factor_ex(x).pivots.tolist()
