"""Factorisations as PyTorch gives them, with pivots counted from 1, and what is computed from them."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp


class LUFactors(NamedTuple):
    """What `torch.linalg.lu_factor` returns: both factors in one matrix, and which row each was exchanged with."""

    LU: jax.Array
    pivots: jax.Array


class PLU(NamedTuple):
    """What `torch.linalg.lu` returns: x = P @ L @ U."""

    P: jax.Array
    L: jax.Array
    U: jax.Array


def lu_factor(x: jax.Array) -> LUFactors:
    """`torch.linalg.lu_factor` of matrices (..., m, n)."""
    factors, pivots = jax.scipy.linalg.lu_factor(x)
    return LUFactors(factors, pivots + 1)


class LUFactorsWithInfo(NamedTuple):
    """What `torch.linalg.lu_factor_ex` returns: `info` is the number of the first pivot that is 0, or 0."""

    LU: jax.Array
    pivots: jax.Array
    info: jax.Array


def lu_factor_ex(x: jax.Array) -> LUFactorsWithInfo:
    """`torch.linalg.lu_factor_ex` of matrices (..., m, n)."""
    factors, pivots = lu_factor(x)
    zero = jnp.diagonal(factors, axis1=-2, axis2=-1) == 0
    number = jnp.arange(1, zero.shape[-1] + 1)
    first = jnp.min(jnp.where(zero, number, zero.shape[-1] + 1), axis=-1, initial=zero.shape[-1] + 1)
    return LUFactorsWithInfo(factors, pivots, jnp.where(first > zero.shape[-1], 0, first).astype(jnp.int32))


def lu(x: jax.Array) -> PLU:
    """`torch.linalg.lu` of matrices (..., m, n)."""
    return lu_unpack(*lu_factor(x))


def lu_unpack(LU: jax.Array, pivots: jax.Array) -> PLU:
    """The matrices P (..., m, m), L (..., m, k) and U (..., k, n) of `lu_factor`, as `torch.lu_unpack`."""
    rows, columns = LU.shape[-2:]
    smaller = min(rows, columns)
    lower = jnp.tril(LU[..., :smaller], -1) + jnp.eye(rows, smaller, dtype=LU.dtype)
    permutation = jax.lax.linalg.lu_pivots_to_permutation(pivots - 1, rows)
    return PLU(jax.nn.one_hot(permutation, rows, dtype=LU.dtype).mT, lower, jnp.triu(LU[..., :smaller, :]))


def lu_solve(LU: jax.Array, pivots: jax.Array, b: jax.Array, left: bool = True, adjoint: bool = False) -> jax.Array:
    """Solves A @ x = b, or x @ A = b if not `left`, with the factors of A or, if `adjoint`, of its A^H."""
    if not left:
        return lu_solve(LU, pivots, b.conj().mT, adjoint=not adjoint).conj().mT
    batch = jnp.broadcast_shapes(LU.shape[:-2], b.shape[:-2])
    p, lower, upper = (jnp.broadcast_to(f, batch + f.shape[-2:]) for f in lu_unpack(LU, pivots))
    b = jnp.broadcast_to(b, batch + b.shape[-2:])
    solve = jax.lax.linalg.triangular_solve
    if adjoint:
        y = solve(upper, b, left_side=True, transpose_a=True, conjugate_a=True)
        y = solve(lower, y, left_side=True, lower=True, transpose_a=True, conjugate_a=True, unit_diagonal=True)
        return p @ y
    y = solve(lower, p.mT @ b, left_side=True, lower=True, unit_diagonal=True)
    return solve(upper, y, left_side=True)


class Inverse(NamedTuple):
    """What `torch.linalg.inv_ex` returns."""

    inverse: jax.Array
    info: jax.Array


class Cholesky(NamedTuple):
    """What `torch.linalg.cholesky_ex` returns."""

    L: jax.Array
    info: jax.Array


class Solution(NamedTuple):
    """What `torch.linalg.solve_ex` returns."""

    result: jax.Array
    info: jax.Array


def info(result: jax.Array, axes: tuple[int, ...] = (-2, -1)) -> jax.Array:
    """0 for results that are finite, 1 for those that are not."""
    return jnp.any(~jnp.isfinite(result), axes).astype(jnp.int32)


def inv_ex(x: jax.Array) -> Inverse:
    """Inverses of square matrices, and an info that is 0 where there is one, as `torch.linalg.inv_ex`."""
    inverse = jnp.linalg.inv(x)
    return Inverse(inverse, info(inverse))


def cholesky_ex(x: jax.Array, upper: bool = False) -> Cholesky:
    """Cholesky factors, and an info that is 0 where x is positive definite, as `torch.linalg.cholesky_ex`."""
    factor = jnp.linalg.cholesky(x, upper=upper)
    return Cholesky(factor, info(factor))


def solve_ex(a: jax.Array, b: jax.Array) -> Solution:
    """Solutions of a @ x = b, and an info that is 0 where there is one, as `torch.linalg.solve_ex`."""
    vectors = b.ndim == 1 or b.shape == a.shape[:-1]
    result = jnp.linalg.solve(a, b[..., None])[..., 0] if vectors else jnp.linalg.solve(a, b)
    return Solution(result, info(jnp.linalg.inv(a)))


def cholesky_inverse(x: jax.Array, upper: bool = False) -> jax.Array:
    """The inverse of the matrix with the Cholesky factor x, as `torch.cholesky_inverse`.

    Only one triangle of x is read; the gradient, as PyTorch's, is that of a factor with both.
    """
    factor = x + jax.lax.stop_gradient((jnp.triu(x) if upper else jnp.tril(x)) - x)
    inverse = jnp.linalg.inv(factor)
    return inverse @ inverse.conj().mT if upper else inverse.conj().mT @ inverse


def reflected(x: jax.Array, tau: jax.Array) -> jax.Array:
    """The whole product (..., m, m) of the Householder reflectors in the columns of x (..., m, n)."""
    vectors = jnp.tril(x, -1) + jnp.eye(*x.shape[-2:], dtype=x.dtype)
    product = jnp.broadcast_to(jnp.eye(x.shape[-2], dtype=x.dtype), x.shape[:-1] + x.shape[-2:-1])
    for i in range(tau.shape[-1]):
        vector = vectors[..., i : i + 1]
        product = product - tau[..., i, None, None] * (product @ vector) @ vector.conj().mT
    return product


def householder_product(x: jax.Array, tau: jax.Array) -> jax.Array:
    """The first columns (..., m, n) of a product of Householder reflectors; JAX's own has no derivative."""
    return reflected(x, tau)[..., : x.shape[-1]]


def ormqr(x: jax.Array, tau: jax.Array, c: jax.Array, left: bool = True, transpose: bool = False) -> jax.Array:
    """A matrix times a product of Householder reflectors, as `torch.ormqr`; JAX's own has no derivative."""
    product = reflected(x, tau)
    product = product.conj().mT if transpose else product
    return product @ c if left else c @ product


class Reflectors(NamedTuple):
    """What `torch.geqrf` returns: R with the Householder reflectors of Q below its diagonal, and their factors."""

    a: jax.Array
    tau: jax.Array


def geqrf(x: jax.Array) -> Reflectors:
    """`torch.geqrf`; NumPy has the transposed of it."""
    transposed, tau = jnp.linalg.qr(x, mode="raw")
    return Reflectors(transposed.mT, tau)


def solve(a: jax.Array, b: jax.Array) -> jax.Array:
    """`torch.linalg.solve`: b holds vectors where it has one axis less than a, and the shape of a's rows."""
    vectors = b.ndim == 1 or b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]
    return jnp.linalg.solve(a, b[..., None])[..., 0] if vectors else jnp.linalg.solve(a, b)


def solve_triangular(
    a: jax.Array, b: jax.Array, upper: bool, left: bool = True, unitriangular: bool = False
) -> jax.Array:
    """`torch.linalg.solve_triangular` of matrices (..., n, n) and (..., n, k), whose batch axes are broadcast."""
    if not left:
        return solve_triangular(a.mT, b.mT, not upper, unitriangular=unitriangular).mT
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    return jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=not upper, unit_diagonal=unitriangular)


class LeastSquares(NamedTuple):
    """What `torch.linalg.lstsq` returns. What a driver of PyTorch does not compute is empty."""

    solution: jax.Array
    residuals: jax.Array
    rank: jax.Array
    singular_values: jax.Array


def lstsq(a: jax.Array, b: jax.Array, rcond: float | None = None, driver: str | None = None) -> LeastSquares:
    """`torch.linalg.lstsq` of matrices (..., m, n) and right sides (..., m, k), by the pseudoinverse."""
    rows, columns = a.shape[-2:]
    values = jnp.linalg.svd(jax.lax.stop_gradient(a), compute_uv=False)
    cut = jnp.finfo(a.dtype).eps * max(rows, columns) if rcond is None else rcond
    rank = jnp.sum(values > cut * jnp.max(values, axis=-1, keepdims=True, initial=0), axis=-1)
    solution = jnp.linalg.pinv(a, rtol=cut) @ b
    whole = driver not in (None, "gelsy") and rows > columns and bool(jnp.all(rank == columns))
    residuals = jnp.square(jnp.abs(a @ solution - b)).sum(-2) if whole else jnp.zeros(0, a.dtype)
    return LeastSquares(
        solution,
        residuals,
        jnp.zeros(0, int) if driver == "gels" else rank,
        values if driver in ("gelsd", "gelss") else jnp.zeros(0, a.dtype),
    )


def tensorsolve(a: jax.Array, b: jax.Array, dims: Sequence[int] | None) -> jax.Array:
    """`torch.linalg.tensorsolve` with axes of a that move to its end: b has as many elements as are left."""
    if dims is not None:
        a = jnp.moveaxis(a, dims, range(a.ndim - len(dims), a.ndim))
    return jnp.linalg.tensorsolve(a, b.reshape(a.shape[: b.ndim]))
