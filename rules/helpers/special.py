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


def xlogy(x: jax.Array, y: jax.Array) -> jax.Array:
    """The product x log(y), as `torch.xlogy`, with its gradients.

    That of x is 0 where x is 0 and y is 0 or less, and where nothing comes back, whatever log(y) is.
    """

    @jax.custom_jvp
    def product(x: jax.Array, y: jax.Array) -> jax.Array:
        return jax.scipy.special.xlogy(x, y)

    @product.defjvp
    def slopes(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
        x, y = primals
        none, zero = (x == 0) & (y <= 0), (x != 0) & (y == 0)
        largest = jnp.finfo(y.dtype).max  # its square is infinite, and nothing times it twice is nothing
        by_x = tangents[0] * jnp.where(zero, -largest, jnp.log(jnp.where(y <= 0, 1, y))) * jnp.where(zero, largest, 1)
        return product(x, y), by_x + tangents[1] * x / jnp.where(none, 1, y)

    dtype = jnp.result_type(x, y, float)
    return product(jnp.asarray(x, dtype), jnp.asarray(y, dtype))


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


def zeta(x: jax.Array, q: jax.Array) -> jax.Array:
    """Hurwitz' zeta function, as `torch.special.zeta`, with a derivative by q; JAX's own is inaccurate for q < 0."""

    @jax.custom_jvp
    def value(x: jax.Array, q: jax.Array) -> jax.Array:
        return hurwitz_zeta(x, q)

    @value.defjvp
    def slope(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
        x, q = primals
        return hurwitz_zeta(x, q), -x * hurwitz_zeta(x + 1, q) * tangents[1]

    return value(*(jnp.asarray(one, jnp.result_type(x, q, float)) for one in (x, q)))


def hurwitz_zeta(x: jax.Array, q: jax.Array) -> jax.Array:
    """The sum of (q + n)**-x over n; below 0, where x is a whole number, from q on until q + n is positive."""
    steps = jnp.where((q < 0) & (q != jnp.floor(q)) & (x > 1) & (x == jnp.floor(x)), jnp.ceil(-q), 0)
    positive = jnp.where(q > 0, q, jnp.where(steps > 0, q + steps, 1))
    value = jax.scipy.special.zeta(jnp.where(x > 1, x, 2), positive)

    def add(i: jax.Array, total: jax.Array) -> jax.Array:
        left = i < steps
        return total + jnp.where(left, jnp.where(left, q + i, 1) ** -x, 0)

    value = jax.lax.fori_loop(0, jnp.max(steps, initial=0).astype(int), add, value)
    pole = jnp.where(q == jnp.floor(q), jnp.inf, jnp.where(x == jnp.floor(x), value, jnp.nan))
    return jnp.where(x == 1, jnp.inf, jnp.where(x < 1, jnp.nan, jnp.where(q > 0, value, pole)))
