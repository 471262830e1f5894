"""Orthogonal polynomials by their recurrences, as in torch.special (https://dlmf.nist.gov/18.9).

The order may be an array of floats, which are cut to whole numbers; of a negative order all are 0.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp


def recurrence(x: jax.Array, n: jax.Array | float, first: jax.Array, step: Callable[..., jax.Array]) -> jax.Array:
    """The polynomial of order n: those of order 0 and 1 are 1 and `first`, `step(k, p, q)` is that of order k + 1."""
    x, n, q = jnp.broadcast_arrays(x, jnp.trunc(n), first)

    def higher(k: int, pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        p, q = pair
        return jnp.where(k < n, q, p), jnp.where(k < n, step(k, p, q), q)

    _, q = jax.lax.fori_loop(1, jnp.max(n, initial=1).astype(int), higher, (jnp.ones_like(q), q))
    return jnp.where(n < 0, 0, jnp.where(n == 0, 1, q))


def chebyshev_polynomial_t(x: jax.Array, n: jax.Array | float) -> jax.Array:
    """Chebyshev polynomials of the first kind."""
    x = jnp.asarray(x, jnp.result_type(x, float))
    return recurrence(x, n, x, lambda k, p, q: 2 * x * q - p)


def chebyshev_polynomial_u(x: jax.Array, n: jax.Array | float) -> jax.Array:
    """Chebyshev polynomials of the second kind."""
    x = jnp.asarray(x, jnp.result_type(x, float))
    return recurrence(x, n, 2 * x, lambda k, p, q: 2 * x * q - p)


def chebyshev_polynomial_v(x: jax.Array, n: jax.Array | float) -> jax.Array:
    """Chebyshev polynomials of the third kind."""
    x = jnp.asarray(x, jnp.result_type(x, float))
    return recurrence(x, n, 2 * x - 1, lambda k, p, q: 2 * x * q - p)


def chebyshev_polynomial_w(x: jax.Array, n: jax.Array | float) -> jax.Array:
    """Chebyshev polynomials of the fourth kind."""
    x = jnp.asarray(x, jnp.result_type(x, float))
    return recurrence(x, n, 2 * x + 1, lambda k, p, q: 2 * x * q - p)


def hermite_polynomial_h(x: jax.Array, n: jax.Array | float) -> jax.Array:
    """Hermite polynomials of the physicists."""
    x = jnp.asarray(x, jnp.result_type(x, float))
    return recurrence(x, n, 2 * x, lambda k, p, q: 2 * (x * q - k * p))


def hermite_polynomial_he(x: jax.Array, n: jax.Array | float) -> jax.Array:
    """Hermite polynomials of probability theory."""
    x = jnp.asarray(x, jnp.result_type(x, float))
    return recurrence(x, n, x, lambda k, p, q: x * q - k * p)


def laguerre_polynomial_l(x: jax.Array, n: jax.Array | float) -> jax.Array:
    """Laguerre polynomials."""
    x = jnp.asarray(x, jnp.result_type(x, float))
    return recurrence(x, n, 1 - x, lambda k, p, q: ((2 * k + 1 - x) * q - k * p) / (k + 1))


def legendre_polynomial_p(x: jax.Array, n: jax.Array | float) -> jax.Array:
    """Legendre polynomials."""
    x = jnp.asarray(x, jnp.result_type(x, float))
    return recurrence(x, n, x, lambda k, p, q: ((2 * k + 1) * x * q - k * p) / (k + 1))
