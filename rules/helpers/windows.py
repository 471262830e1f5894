"""Windows that jax.numpy lacks, as in torch.signal.windows (https://docs.pytorch.org/docs/stable/signal.html).

A window that isn't symmetric (`sym=False`) is periodic: one of a point more, without the last.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp


def general_cosine_window(M: int, a: Sequence[float], sym: bool = True) -> jax.Array:
    """Sum of cosines with the coefficients `a`, of alternating signs; M points."""
    if M == 1:
        return jnp.ones(1)
    angle = 2 * jnp.pi * jnp.arange(M) / (M - 1 if sym else M)
    return sum(((-1) ** i * c * jnp.cos(i * angle) for i, c in enumerate(a)), jnp.zeros(M))


def cosine_window(M: int, sym: bool = True) -> jax.Array:
    """Half a period of a sine; M points."""
    return jnp.sin(jnp.pi * (jnp.arange(M) + 0.5) / (M if sym or M <= 1 else M + 1))


def exponential_window(M: int, center: float | None = None, tau: float = 1.0, sym: bool = True) -> jax.Array:
    """Falls from `center` (the middle) on both sides, by a factor of e in `tau` points; M points."""
    middle = (M - 1 if sym or M <= 1 else M) / 2 if center is None else center
    return jnp.exp(-jnp.abs(jnp.arange(M) - middle) / tau)


def gaussian_window(M: int, std: float = 1.0, sym: bool = True) -> jax.Array:
    """A bell of standard deviation `std`, in points, around the middle; M points."""
    middle = (M - 1 if sym or M <= 1 else M) / 2
    return jnp.exp(-jnp.square((jnp.arange(M) - middle) / std) / 2)
