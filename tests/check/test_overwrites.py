"""Values that are written to one place several times: the last has the gradient, and right code isn't accused."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import VerdictKind

from .conftest import Check

TORCH = """import torch

# t2j: x=f32[4], rows=i64[4] < 2
def place(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(6, dtype=x.dtype)
    WRITE
    return out * out
"""
JAX = """import jax
import jax.numpy as jnp

def place(x: jax.Array, rows: jax.Array) -> jax.Array:
    out = jnp.zeros(6, dtype=x.dtype)
    WRITE
    return out * out
"""
WRITES = {
    "out[rows] = x": "out = out.at[rows].set(x)",
    "out.index_put_((rows,), x)": "out = out.at[rows].set(x)",
    "out = out.scatter(0, rows, x)": "out = out.at[rows].set(x)",
    "out[rows] += x": "out = out.at[rows].set(out[rows] + x)",
}


@pytest.mark.parametrize("torch", WRITES)
def test_right_code_is_not_accused(torch: str, check: Check) -> None:
    verdict = check(TORCH.replace("WRITE", torch), JAX.replace("WRITE", WRITES[torch]))
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason


@pytest.mark.parametrize(
    "jax",
    [
        "out = out.at[rows].add(x)",
        "out = out.at[rows].set(jax.lax.stop_gradient(x))",
        "sums = out.at[rows].add(x)\n    out = jax.lax.stop_gradient(out.at[rows].set(x) - sums) + sums",
    ],
)
def test_a_wrong_gradient_is_caught(jax: str, check: Check) -> None:
    verdict = check(TORCH.replace("WRITE", "out[rows] = x"), JAX.replace("WRITE", jax))
    assert verdict.verdict is VerdictKind.DIFFERENT
