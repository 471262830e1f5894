"""Of equal elements both sides name the one with the lowest index first, whose gradient it is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp.check.workers.jax_side.ties import in_order


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("values", [[[1.0, 2.0, 2.0], [2.0, 2.0, 1.0]], [[0.0, np.nan, 0.0], [np.nan, 1.0, 0.0]]])
def test_a_sort_that_counts_down_keeps_their_order(values: list[list[float]], axis: int) -> None:
    weights = np.arange(1.0, 7.0).reshape(2, 3)
    tensor = torch.tensor(values, requires_grad=True)
    ordered = torch.sort(tensor, dim=axis, descending=True, stable=True).values
    (ordered.nan_to_num() * torch.tensor(weights)).sum().backward()
    sort = in_order(jnp.sort)
    array = jnp.asarray(values)
    np.testing.assert_array_equal(sort(array, axis=axis, descending=True), ordered.detach().numpy())
    gradient = jax.grad(lambda x: (jnp.nan_to_num(sort(x, axis=axis, descending=True)) * weights).sum())(array)
    np.testing.assert_array_equal(gradient, tensor.grad)


def test_other_sorts_are_those_of_jax() -> None:
    sort, array = in_order(jnp.sort), jnp.asarray([[3, 1], [2, 2]])
    np.testing.assert_array_equal(sort(array), [[1, 3], [2, 2]])
    np.testing.assert_array_equal(sort(array, axis=None, descending=True), [3, 2, 2, 1])
    np.testing.assert_array_equal(sort(array, 0), [[2, 1], [3, 2]])
