"""Writes by masks of some axes: a choice, which runs under jit, or a note that they don't."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp import convert

from .side_by_side import sides

HEAD = "import torch\n\n\n"
BODY = """def f(x, m, y):
    low = m > 0.2
    high = m < 0.7
    x = x.clone()
    {}
    return x
"""
WRITES = [
    "x[..., low] = 2",
    "x[..., low & high] = 2.5",
    "both = low & high\n    x[..., both] = 2.5",
    "x[..., ~low] *= 3",
    "x[..., low] += 1",
    "x[..., low] = y[..., low]",
    "x[:, low] = 2",
    "x[:, low] -= y[:, low]",
    "x[..., low[:, 0], :] = 0.5",
    "x[:, low[:, 0]] = 0.5",
    "x[:, :, low[0]] = -1",
    "x[:, low[:, 1], :] = 4",
    "x[low[:2, :3]] = 4",
]


@pytest.mark.parametrize("kind", ["float64", "int64"])
@pytest.mark.parametrize("write", WRITES)
def test_some_axes_are_chosen_by_a_mask(write: str, kind: str) -> None:
    both = sides(HEAD + BODY.format(write), "masks_among_axes")
    assert not both.gaps() and not both.translation.findings
    rng = np.random.default_rng(0)
    x, y = (rng.integers(1, 9, size=(2, 3, 4)).astype(kind) for _ in "xy")
    m = rng.uniform(size=(3, 4))
    with jax.enable_x64(True):
        wanted = both.torch.f(torch.as_tensor(x), torch.as_tensor(m), torch.as_tensor(y)).numpy()
        given = jax.jit(both.jax.f)(jnp.asarray(x), jnp.asarray(m), jnp.asarray(y))
        np.testing.assert_allclose(given, wanted)
        assert given.dtype == wanted.dtype


@pytest.mark.parametrize(
    "write",
    [
        "x[..., low] = y",
        "x[:, 1:, low] = 2",
        "x[0, low] = 2",
        "x[low, :2] = 1",
        "x[:, low] = torch.rand(3)",
        "x[low] = y",
        "x[[0, 1], low] = 2",
    ],
)
def test_what_is_no_choice_is_said_to_fail_under_jit(write: str) -> None:
    done = convert(HEAD + BODY.format(write))
    assert "value-needed" in {finding.code for finding in done.findings}


@pytest.mark.parametrize("write", ["x[..., 0] = 2", "x[:, m] = 2", "x[..., 1:2] = y", "x[None, ..., m] = 1"])
def test_other_indices_stay(write: str) -> None:
    done = convert(HEAD + BODY.format(write))
    assert not done.gaps and ".at[" in done.code and "where" not in done.code
