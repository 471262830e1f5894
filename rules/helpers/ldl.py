"""The factorisation of symmetric matrices by Bunch and Kaufman, with pivots as LAPACK's `sytrf` counts them.

Source: https://netlib.org/lapack/explore-html/d8/d0e/group__hetf2.html (the lower triangle)
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp


class LDLFactors(NamedTuple):
    """What `torch.linalg.ldl_factor` returns: both factors in one matrix, negative pivots for blocks of two rows."""

    LD: jax.Array
    pivots: jax.Array


class LDLFactorsWithInfo(NamedTuple):
    """What `torch.linalg.ldl_factor_ex` returns: `info` is the number of the first pivot that is 0, or 0."""

    LD: jax.Array
    pivots: jax.Array
    info: jax.Array


def ldl_factor(x: jax.Array, hermitian: bool = False) -> LDLFactors:
    """`torch.linalg.ldl_factor` of symmetric (or `hermitian`) matrices (..., n, n), of which the lower half is read."""
    factors = ldl_factor_ex(x, hermitian)
    return LDLFactors(factors.LD, factors.pivots)


def ldl_factor_ex(x: jax.Array, hermitian: bool = False) -> LDLFactorsWithInfo:
    """`torch.linalg.ldl_factor_ex`; see `ldl_factor`."""
    lower = jnp.tril(jax.lax.stop_gradient(x))
    above = jnp.tril(x, -1).mT
    whole = lower + (above.conj() if hermitian else above)
    one = functools.partial(bunch_kaufman, hermitian=hermitian)
    return LDLFactorsWithInfo(*jnp.vectorize(one, signature="(n,n)->(n,n),(n),()")(whole))


def bunch_kaufman(x: jax.Array, hermitian: bool) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The factors of one matrix (n, n), the pivots (n,), and the number of the first one that is 0."""
    n = x.shape[-1]
    rows = jnp.arange(n)
    alpha = (1 + 17**0.5) / 8

    def size(a: jax.Array) -> jax.Array:
        return jnp.abs(a.real) + jnp.abs(a.imag)

    def step(k: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        a, pivots, info, second = state
        after, own = jnp.where(rows > k, size(a[:, k]), 0), jnp.abs(a[k, k].real) + jnp.abs(a[k, k].imag)
        other, largest = jnp.argmax(after), jnp.max(after)
        beside = jnp.max(jnp.where((rows >= k) & (rows != other), size(a[other]), 0))
        zero = jnp.maximum(own, largest) == 0
        stays = zero | (own >= alpha * largest) | (own * beside >= alpha * largest * largest)
        alone = stays | (size(a[other, other]) >= alpha * beside)
        place = jnp.where(alone, k, jnp.minimum(k + 1, n - 1))
        chosen = jnp.where(stays, k, other)
        order = rows.at[place].set(chosen).at[chosen].set(place)
        rest = (rows[:, None] >= k) & (rows >= k)
        moved = jnp.where(rest, a[order][:, order], a)
        block = jnp.where(alone, 1, 2)
        below = rows >= k + block
        pair = jnp.stack([k, place])
        columns = jnp.where(below[:, None] & jnp.stack([True, ~alone]), moved[:, pair], 0)
        corner = moved[pair][:, pair]
        corner = jnp.where(alone, jnp.diag(jnp.stack([jnp.where(zero, 1, corner[0, 0]), 1])), corner)
        factor = columns @ jnp.linalg.inv(corner)
        moved = moved - factor @ (columns.conj() if hermitian else columns).T
        moved = moved.at[:, k].set(jnp.where(below, factor[:, 0], moved[:, k]))
        moved = moved.at[:, place].set(jnp.where(below & ~alone, factor[:, 1], moved[:, place]))
        number = jnp.where(alone, chosen + 1, -chosen - 1).astype(jnp.int32)
        failed = jnp.where(zero & (info == 0), k + 1, info).astype(jnp.int32)
        done = (moved, pivots.at[pair].set(number), failed, ~alone)
        skipped = (a, pivots, info, jnp.array(False))
        return tuple(jnp.where(second, old, new) for old, new in zip(skipped, done, strict=True))

    start = (x, jnp.zeros(n, jnp.int32), jnp.int32(0), jnp.array(False))
    factors, pivots, info, _ = jax.lax.fori_loop(0, n, step, start) if n else start
    return jnp.tril(factors), pivots, info


def ldl_parts(factors: jax.Array, pivots: jax.Array, hermitian: bool) -> tuple[jax.Array, jax.Array, jax.Array]:
    """L and D (n, n) of `ldl_factor`, and the order of rows: x[order][:, order] = L @ D @ L^T."""
    n = pivots.size
    rows = jnp.arange(n)

    def step(k: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        lower, order, pairs, second = state
        pair = (pivots[k] < 0) & ~second
        place, chosen = jnp.where(pair, k + 1, k), jnp.where(second, k, jnp.abs(pivots[k]) - 1)
        moved = rows.at[place].set(chosen).at[chosen].set(place)
        return jnp.where(rows < k, lower[moved], lower), order[moved], pairs.at[k].set(pair), pair

    start = (jnp.tril(factors, -1), rows, jnp.zeros(n, bool), jnp.array(False))
    lower, order, pairs, _ = jax.lax.fori_loop(0, n, step, start)
    beside = jnp.where(pairs[:-1], jnp.diagonal(factors, -1), 0)
    middle = jnp.diag(jnp.diagonal(factors)) + jnp.diag(beside, -1)
    middle = middle + jnp.diag(beside.conj() if hermitian else beside, 1)
    within = jnp.diag(jnp.where(pairs[:-1], jnp.diagonal(lower, -1), 0), -1)
    return lower - within + jnp.eye(n, dtype=lower.dtype), middle, order


def ldl_solve(factors: jax.Array, pivots: jax.Array, b: jax.Array, hermitian: bool = False) -> jax.Array:
    """`torch.linalg.ldl_solve`: solves A @ x = b (..., n, k) with what `ldl_factor` gives for A (..., n, n)."""

    def one(factors: jax.Array, pivots: jax.Array, b: jax.Array) -> jax.Array:
        if not pivots.size:
            return b
        lower, middle, order = ldl_parts(factors, pivots, hermitian)
        solve = functools.partial(jax.lax.linalg.triangular_solve, left_side=True, lower=True, unit_diagonal=True)
        y = jnp.linalg.solve(middle, solve(lower, b[order]))
        return jnp.zeros_like(y).at[order].set(solve(lower, y, transpose_a=True, conjugate_a=hermitian))

    return jnp.vectorize(one, signature="(n,n),(n),(n,k)->(n,k)")(factors, pivots, b)
