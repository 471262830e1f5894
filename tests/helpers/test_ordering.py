"""Extremes, sorts and order statistics with their indices against PyTorch, with ties and NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from t2j_lsp.rules.helpers import ordering

from .compare import array, same_function

TIES = np.array([[3.0, 1.0, 3.0, 0.0, 0.0], [2.0, 2.0, 2.0, 2.0, -1.0], [5.0, 1.0, 4.0, 5.0, 1.0]])
DISTINCT = np.random.default_rng(0).permutation(30).reshape(5, 6).astype(float)
WITH_NAN = np.array([[3.0, np.nan, 1.0, np.nan, 2.0], [2.0, 7.0, -1.0, 0.0, 4.0]])
PAIRS = [
    (ordering.max_with_indices, torch.max),
    (ordering.min_with_indices, torch.min),
    (ordering.median_with_indices, torch.median),
    (ordering.nanmedian_with_indices, torch.nanmedian),
    (ordering.mode_with_indices, torch.mode),
]


def same_pair(
    jax_side: Callable[..., Any], torch_side: Callable[..., Any], x: np.ndarray, gradients: bool = True
) -> None:
    """Values, indices and gradients of two functions that return (values, indices)."""
    same_function(lambda a: tuple(jax_side(a)), lambda a: tuple(torch_side(a)), x, gradients=gradients)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize(("jax_side", "torch_side"), PAIRS)
def test_extremes_and_medians(
    jax_side: Callable[..., Any], torch_side: Callable[..., Any], axis: int, keepdims: bool
) -> None:
    same_pair(lambda x: jax_side(x, axis, keepdims), lambda x: torch_side(x, axis, keepdims), DISTINCT)


@pytest.mark.parametrize(("jax_side", "torch_side"), [PAIRS[0], PAIRS[1], PAIRS[4]])
def test_one_of_equal_elements_gets_the_gradient(jax_side: Callable[..., Any], torch_side: Callable[..., Any]) -> None:
    same_pair(lambda x: jax_side(x, 1), lambda x: torch_side(x, 1), TIES)


@pytest.mark.parametrize(("jax_side", "torch_side"), PAIRS[:4])
def test_nan_is_found_as_in_pytorch(jax_side: Callable[..., Any], torch_side: Callable[..., Any]) -> None:
    same_pair(lambda x: jax_side(x, 1), lambda x: torch_side(x, 1), WITH_NAN, gradients=False)


@pytest.mark.parametrize("x", [DISTINCT[:1], DISTINCT[:, :5], TIES, WITH_NAN], ids=["even", "odd", "ties", "nan"])
def test_medians_of_everything(x: np.ndarray) -> None:
    same_function(ordering.lower_median, torch.median, x)
    same_function(ordering.lower_nanmedian, torch.nanmedian, x)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("x", [DISTINCT, TIES, WITH_NAN], ids=["distinct", "ties", "nan"])
def test_sort(x: np.ndarray, descending: bool) -> None:
    same_pair(
        lambda a: ordering.sort_with_indices(a, 1, descending),
        lambda a: torch.sort(a, dim=1, descending=descending, stable=True),
        x,
        gradients=False,
    )


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
def test_top_k_and_kth_value(axis: int, largest: bool) -> None:
    same_pair(lambda x: ordering.top_k(x, 3, axis, largest), lambda x: torch.topk(x, 3, axis, largest), DISTINCT)
    same_pair(lambda x: ordering.kth_value(x, 2, axis), lambda x: torch.kthvalue(x, 2, axis), DISTINCT)


@pytest.mark.parametrize("axis", [0, -1])
def test_running_extremes_index_the_last_of_equal_elements(axis: int) -> None:
    for x in (TIES, array(3, 4)):
        same_pair(lambda a: ordering.cummax_with_indices(a, axis), lambda a: torch.cummax(a, axis), x)
        same_pair(lambda a: ordering.cummin_with_indices(a, axis), lambda a: torch.cummin(a, axis), x)
