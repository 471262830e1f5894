"""Special functions where jax.scipy.special loses its accuracy."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def digamma(x: jax.Array) -> jax.Array:
    """Derivative of log(gamma(x)), as `torch.digamma`; its gradient is exact for negative x, too."""
    return polygamma(0, x)


def polygamma(n: int, x: jax.Array) -> jax.Array:
    """The n-th derivative of `digamma`, as `torch.polygamma`; reflected for x below 1/2.

    (-1)^n polygamma(n, 1 - x) - polygamma(n, x) is pi times the n-th derivative of cot(pi x), a polynomial of the
    cotangent (https://dlmf.nist.gov/5.15#E6).
    """
    x = jnp.asarray(x, jnp.result_type(x, float))
    reflect = x < 0.5
    pole = reflect & (x == jnp.round(x))
    value = jax.scipy.special.polygamma(n, jnp.where(reflect, 1 - x, x))
    polynomial = np.array([1.0, 0.0])
    for _ in range(n):
        polynomial = -np.polymul([1.0, 0.0, 1.0], np.polyder(polynomial))
    cotangent = 1 / jnp.tan(jnp.pi * jnp.where(reflect & ~pole, x - jnp.round(x), 0.25))
    derivative = math.pi ** (n + 1) * jnp.polyval(jnp.asarray(polynomial, x.dtype), cotangent)
    limit = jnp.where(x == 0, -jnp.copysign(jnp.inf, x), jnp.nan) if n == 0 else -((-1.0) ** n) * jnp.inf
    return jnp.where(pole, limit, jnp.where(reflect, (-1) ** n * value - derivative, value))


def erfcx(x: jax.Array) -> jax.Array:
    """exp(x^2) erfc(x), as `torch.special.erfcx`; by its asymptotic series for large x (https://dlmf.nist.gov/7.12#E1)."""
    x = jnp.asarray(x, jnp.result_type(x, float))
    large = 25.0 if x.dtype == jnp.float64 else 9.0
    beyond = jnp.where(x > large, x, large)
    y = 0.5 / jnp.square(beyond)
    series = (1 - y * (1 - 3 * y * (1 - 5 * y * (1 - 7 * y)))) / (beyond * math.sqrt(math.pi))
    return jnp.where(x > large, series, jax.scipy.special.erfcx(jnp.minimum(x, large)))


def nextafter(x: jax.Array, y: jax.Array) -> jax.Array:
    """`torch.nextafter`, with its gradient, which JAX has not: that of x, but 0 where x is y."""

    @jax.custom_jvp
    def following(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.nextafter(x, y)

    @following.defjvp
    def slope(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
        return jnp.nextafter(*primals), jnp.where(primals[0] == primals[1], 0, tangents[0])

    return following(x, y)
