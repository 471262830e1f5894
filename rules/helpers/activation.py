"""Activations with PyTorch's parameters and its gradients at the points where a function has a kink.

Of `jax.nn`, leaky_relu and hard_tanh have other gradients at their kinks. The rest agrees: relu, relu6, elu, selu,
celu, silu, mish, sigmoid, log_sigmoid, hard_sigmoid, hard_swish, soft_sign, softmax, log_softmax, glu, and gelu where
`approximate` is given. The modules are in `activation_modules.py`.
Source: https://docs.pytorch.org/docs/stable/nn.functional.html#non-linear-activation-functions
"""

import jax
import jax.numpy as jnp
from flax import nnx

from .dropout import dropout_key


def leaky_relu(x: jax.Array, negative_slope: float = 0.01) -> jax.Array:
    """`F.leaky_relu`: x where positive, else negative_slope * x, with gradient negative_slope at 0."""
    return jnp.where(x > 0, x, negative_slope * x)


def hardtanh(x: jax.Array, min_val: float = -1.0, max_val: float = 1.0) -> jax.Array:
    """`F.hardtanh`: x clipped to [min_val, max_val], with gradient 0 on the bounds."""
    bounds = jnp.asarray(min_val).astype(x.dtype), jnp.asarray(max_val).astype(x.dtype)
    return jnp.where((x > bounds[0]) & (x < bounds[1]), x, jax.lax.stop_gradient(jnp.clip(x, *bounds)))


def hardshrink(x: jax.Array, lambd: float = 0.5) -> jax.Array:
    """`F.hardshrink`: 0 within [-lambd, lambd], else x."""
    return jnp.where(jnp.abs(x) <= lambd, 0, x)


def softshrink(x: jax.Array, lambd: float = 0.5) -> jax.Array:
    """`F.softshrink`: x moved towards 0 by lambd, and 0 within [-lambd, lambd]."""
    return jnp.where(x > lambd, x - lambd, jnp.where(x < -lambd, x + lambd, 0 * x))


def softplus(x: jax.Array, beta: float = 1.0, threshold: float = 20.0) -> jax.Array:
    """`F.softplus`: log(1 + exp(beta * x)) / beta, and x itself where beta * x > threshold."""
    return jnp.where(beta * x > threshold, x, jax.nn.softplus(beta * x) / beta)


def threshold(x: jax.Array, threshold: float, value: float) -> jax.Array:
    """`F.threshold`: x where above the threshold, else the value."""
    return jnp.where(x <= threshold, value, x)


def prelu(x: jax.Array, weight: jax.Array) -> jax.Array:
    """`F.prelu`: x where positive, else weight * x; weight has one element, or one for each channel (axis 1)."""
    weight = weight.reshape((-1,) + (1,) * (x.ndim - 2) if weight.size > 1 else ())
    return jnp.where(x > 0, x, weight * x)


def rrelu(
    x: jax.Array,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    *,
    deterministic: bool = True,
    rngs: nnx.Rngs | nnx.RngStream | None = None,
) -> jax.Array:
    """`F.rrelu`: x where positive, else x times a random slope in [lower, upper) (their mean when deterministic)."""
    if deterministic:
        return leaky_relu(x, (lower + upper) / 2)
    return jnp.where(x > 0, x, x * jax.random.uniform(dropout_key(rngs), x.shape, x.dtype, lower, upper))


def implicit_softmax_axis(ndim: int) -> int:
    """The axis that PyTorch takes for softmax, softmin and log_softmax where `dim` is not given."""
    return 0 if ndim in (0, 1, 3) else 1
