"""Norms of parameters as Flax holds them: a Variable is no array for a comparison."""

from __future__ import annotations

import jax.numpy as jnp
import pytest
from flax import nnx

from t2j_lsp.rules.helpers.math import vector_norm


@pytest.mark.parametrize(("order", "norm"), [(1, 7.0), (2, 5.0), (0, 2.0), (float("inf"), 4.0)])
def test_a_variable_has_the_norm_of_its_array(order: float, norm: float) -> None:
    assert float(vector_norm(nnx.Param(jnp.array([3.0, -4.0, 0.0])), order)) == pytest.approx(norm)
