"""Elementwise functions and norms against PyTorch, at zeros, ties, infinities and NaN too."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp.rules.helpers.math import (
    absolute,
    affine,
    angle_of,
    arctan2,
    cdist,
    clamp,
    clamp_to,
    copysign,
    eig,
    euclidean_norm,
    fmax,
    fmin,
    full_svd,
    gumbel_softmax,
    matrix_exp,
    of_triangle,
    power,
    standard_deviation,
    svd_with_v,
    trunc_divide,
    vector_norm,
)

from .compare import array, same_function

ZEROS_AND_TIES = np.array([[-2.0, 0.0, 0.0, 3.0], [1.0, -1.0, 2.0, 2.0], [0.0, 0.0, 0.0, 0.0]])
ORDERS = [0, 0.5, 1, 2, 3, 2.5, math.inf, -math.inf, -1, -2]


def test_absolute_has_gradient_zero_at_zero() -> None:
    same_function(absolute, torch.abs, ZEROS_AND_TIES)


def test_angle_has_gradient_zero_at_zero() -> None:
    same_function(angle_of, torch.angle, ZEROS_AND_TIES)
    same_function(angle_of, torch.angle, np.array([0j, 1 + 1j, -2 + 0j, 3j, -1 - 2j]))


def test_powers_have_no_gradient_where_the_exponent_is_zero() -> None:
    bases, exponents = np.meshgrid([0.0, 0.5, 1.0, 2.0], [0.0, 0.5, 1.0, 2.0, 3.0])
    same_function(power, torch.pow, bases, exponents)
    same_function(
        lambda x, p, q: power(1 - power(x, p), q), lambda x, p, q: torch.pow(1 - torch.pow(x, p), q),
        np.array([0.25, 0.5, 0.75]), np.array([0.0, 1.0, 2.0]), np.array([0.5, 0.5, 0.0]),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("jax_function", "torch_function"),
    [(arctan2, torch.atan2), (copysign, torch.copysign), (fmax, torch.fmax), (fmin, torch.fmin)],
    ids=["arctan2", "copysign", "fmax", "fmin"],
)
def test_pairs_have_pytorchs_gradient_at_zeros_and_ties(jax_function: object, torch_function: object) -> None:
    same_function(jax_function, torch_function, ZEROS_AND_TIES, ZEROS_AND_TIES[::-1])
    same_function(jax_function, torch_function, ZEROS_AND_TIES, ZEROS_AND_TIES)


def test_the_larger_and_the_smaller_leave_nan_out() -> None:
    x, y = np.array([np.nan, 1.0, np.nan]), np.array([2.0, np.nan, np.nan])
    for jax_function, torch_function in ((fmax, torch.fmax), (fmin, torch.fmin)):
        np.testing.assert_array_equal(jax_function(x, y), torch_function(torch.tensor(x), torch.tensor(y)).numpy())


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_one_triangle_decides_about_eigenvalues(uplo: str) -> None:
    same_function(
        lambda x: jnp.linalg.eigvalsh(of_triangle(x, uplo)), lambda x: torch.linalg.eigvalsh(x, uplo), array(2, 4, 4)
    )


def test_eigenvectors_have_a_derivative() -> None:
    """Their lengths stay 1; their phases are arbitrary, and PyTorch refuses gradients of what depends on them."""
    x, weights = array(3, 4, 4), array(3, 4, 4)
    same_function(
        lambda x: (weights * abs(eig(x).eigenvectors)).sum(-2) * abs(eig(x)[0]),
        lambda x: (torch.as_tensor(weights) * torch.linalg.eig(x)[1].abs()).sum(-2) * torch.linalg.eig(x)[0].abs(),
        x,
    )


def test_a_full_decomposition_of_a_square_matrix_has_a_derivative() -> None:
    same_function(
        lambda x: full_svd(x)[0] @ full_svd(x)[2], lambda x: torch.linalg.svd(x)[0] @ torch.linalg.svd(x)[2],
        array(3, 3, 3),
    )  # fmt: skip
    assert [part.shape for part in full_svd(array(3, 5))] == [(3, 3), (3,), (5, 5)]


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (2, 3, 4)], ids=str)
def test_a_full_decomposition_has_the_derivative_of_the_thin_one(shape: tuple[int, ...]) -> None:
    x, n = array(*shape), min(shape[-2:])
    same_function(
        lambda x: (full_svd(x)[0][..., :n] @ full_svd(x)[2][..., :n, :]) ** 2,
        lambda x: (torch.linalg.svd(x)[0][..., :n] @ torch.linalg.svd(x)[2][..., :n, :]) ** 2,
        x,
    )
    u, s, vh = full_svd(jnp.asarray(x))
    np.testing.assert_allclose(u[..., :n] * s[..., None, :] @ vh[..., :n, :], x, atol=1e-12)
    for square in (u, vh):
        np.testing.assert_allclose(
            square @ square.mT, np.broadcast_to(np.eye(square.shape[-1]), square.shape), atol=1e-12
        )


@pytest.mark.parametrize(("low", "high"), [(0.0, 2.0), (None, 2.0), (0.0, None)])
def test_clamp_keeps_the_gradient_of_values_on_a_bound(low: float | None, high: float | None) -> None:
    same_function(lambda x: clamp(x, low, high), lambda x: torch.clamp(x, low, high), ZEROS_AND_TIES)


def test_clamp_by_arrays_gives_the_bounds_their_gradient() -> None:
    bounds = ZEROS_AND_TIES - array(3, 4), ZEROS_AND_TIES + np.abs(array(3, 4, seed=1))
    same_function(clamp_to, torch.clamp, ZEROS_AND_TIES, *bounds)


def test_a_lower_bound_that_is_the_upper_one_has_no_gradient() -> None:
    low = np.array([0.0, 1.0, -1.0, 2.0])
    high = np.array([0.0, 1.0, 2.0, -1.0])
    for x in (-2.0, 0.0, 3.0):
        same_function(clamp_to, torch.clamp, np.full(4, x), low, high)


def test_clamp_by_arrays_gives_nan_where_a_bound_is_nan() -> None:
    x, nan = np.array([1.0, 2.0, np.nan, 4.0]), np.nan
    low, high = np.array([nan, 3.0, 1.0, 0.0]), np.array([2.0, 3.0, nan, nan])
    same_function(clamp_to, torch.clamp, x, low, high, gradients=False)
    same_function(clamp_to, torch.clamp_min, x, low, gradients=False)
    same_function(lambda x, y: clamp_to(x, max=y), torch.clamp_max, x, high, gradients=False)


@pytest.mark.parametrize("norm", [0.0, 0.1, 5.0, 7.0, 10.5, 21.0, 43.0])
def test_matrix_exponentials_are_exact_at_every_norm(norm: float) -> None:
    x = array(3, 4, 4)
    x = (x - x.swapaxes(1, 2)) * norm / 4  # rotations: of scale 1, whatever the norm
    same_function(matrix_exp, torch.linalg.matrix_exp, x)
    narrow = matrix_exp(jnp.asarray(x, jnp.float32))
    assert np.max(np.abs(narrow - torch.linalg.matrix_exp(torch.tensor(x)).numpy())) < 1e-4


def test_clamp_keeps_nan() -> None:
    same_function(lambda x: clamp(x, 0, 1), lambda x: x.clamp(0, 1), np.array([np.nan, 2.0]), gradients=False)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_trunc_divide_rounds_towards_zero(dtype: type) -> None:
    x, y = np.array([7, -7, 7, -7, 0], dtype), np.array([2, 2, -2, -2, 3], dtype)
    same_function(trunc_divide, lambda a, b: torch.div(a, b, rounding_mode="trunc"), x, y)


@pytest.mark.parametrize("axis", [None, 1, (0, 1)])
@pytest.mark.parametrize("ddof", [0, 1])
def test_standard_deviation_of_equal_values_has_gradient_zero(axis: int | None, ddof: int) -> None:
    same_function(
        lambda x: standard_deviation(x, axis, ddof, keepdims=True),
        lambda x: torch.std(x, axis, correction=ddof, keepdim=True),
        ZEROS_AND_TIES,
    )


@pytest.mark.parametrize("axis", [None, 1])
def test_euclidean_norm_of_zeros_has_gradient_zero(axis: int | None) -> None:
    same_function(lambda x: euclidean_norm(x, axis), lambda x: torch.norm(x, dim=axis), ZEROS_AND_TIES)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("axis", [None, 1])
def test_vector_norm_of_every_order(order: float, axis: int | None) -> None:
    same_function(
        lambda x: vector_norm(x, order, axis),
        lambda x: torch.linalg.vector_norm(x, order, axis),
        np.abs(array(3, 4)) + 0.1 if order < 1 else ZEROS_AND_TIES,
        gradients=order != 0,
    )


@pytest.mark.parametrize("order", ORDERS)
def test_vector_norm_of_rows_with_zeros_has_the_same_value(order: float) -> None:
    same_function(
        lambda x: vector_norm(x, order, -1),
        lambda x: torch.linalg.vector_norm(x, order, -1),
        ZEROS_AND_TIES,
        gradients=False,
    )


def test_norms_of_complex_arrays_are_real() -> None:
    z = array(2, 3) + 1j * array(2, 3, seed=1)
    same_function(lambda x: vector_norm(x, 3, 1), lambda x: torch.linalg.vector_norm(x, 3, 1), z)
    same_function(lambda x: euclidean_norm(x, 1), lambda x: torch.linalg.vector_norm(x, dim=1), z)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_cdist_of_equal_rows_has_gradient_zero(p: float) -> None:
    other = np.concatenate([ZEROS_AND_TIES[:1], array(1, 4)])
    same_function(lambda a, b: cdist(a, b, p), lambda a, b: torch.cdist(a, b, p), ZEROS_AND_TIES, other)


@pytest.mark.parametrize("bias", [False, True])
def test_linear_takes_a_weight_in_pytorchs_layout(bias: bool) -> None:
    inputs = [array(2, 3), array(4, 3, seed=1), *([array(4)] if bias else [])]
    same_function(affine, torch.nn.functional.linear, *inputs)


@pytest.mark.parametrize("full", [False, True])
def test_svd_returns_v(full: bool) -> None:
    x = array(4, 3)
    u, s, v = svd_with_v(jnp.asarray(x), full)
    same_function(lambda a: svd_with_v(a, full).S, lambda a: torch.svd(a, some=not full).S, x, gradients=not full)
    np.testing.assert_allclose(u[:, :3] @ jnp.diag(s) @ v.T, x, atol=1e-12)
    assert (u.shape, v.shape) == tuple(tuple(t.shape) for t in torch.svd(torch.tensor(x), some=not full)[::2])


def test_gumbel_softmax_follows_the_distribution() -> None:
    logits = jnp.log(jnp.array([0.7, 0.2, 0.1]))
    rngs = nnx.Rngs(0)
    hard = gumbel_softmax(jnp.broadcast_to(logits, (20000, 3)), hard=True, rngs=rngs)
    np.testing.assert_allclose(hard.mean(0), [0.7, 0.2, 0.1], atol=0.02)
    np.testing.assert_allclose(jnp.sort(hard, axis=-1)[:, -1], 1.0, atol=1e-12)
    soft = gumbel_softmax(jnp.zeros((2, 5)), tau=0.5, axis=0, rngs=rngs)
    np.testing.assert_allclose(soft.sum(0), np.ones(5), atol=1e-12)
    gradient = jax.grad(lambda x: (gumbel_softmax(x, hard=True, rngs=nnx.Rngs(1)) * jnp.arange(3.0)).sum())(logits)
    assert np.abs(gradient).max() > 1e-3
