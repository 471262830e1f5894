"""The normalization functions of `torch.nn.functional`, without its in-place updates of running statistics.

Statistics are computed in float32 at least and the result has the dtype of `x`, as in PyTorch. Weights may be arrays or
`nnx.Param`s. Source: https://docs.pytorch.org/docs/stable/nn.functional.html#normalization-functions
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .math import vector_norm


def center_and_scale(x: jax.Array, axes: Sequence[int], eps: float) -> jax.Array:
    """(x - mean) / sqrt(variance + eps) over `axes`, in float32 at least."""
    x = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    x -= x.mean(axes, keepdims=True)
    return x * jax.lax.rsqrt(jnp.square(x).mean(axes, keepdims=True) + eps)


def scale_and_shift(x: jax.Array, weight: jax.Array | None, bias: jax.Array | None, shape: Sequence[int]) -> jax.Array:
    """Computes x * weight + bias, both reshaped to `shape` first; either may be None."""
    if weight is not None:
        x = x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def layer_norm(
    x: jax.Array,
    normalized_shape: Sequence[int],
    weight: jax.Array | None = None,
    bias: jax.Array | None = None,
    eps: float = 1e-5,
) -> jax.Array:
    """`F.layer_norm`: normalizes over the last `len(normalized_shape)` axes."""
    y = center_and_scale(x, tuple(range(-len(normalized_shape), 0)), eps)
    return scale_and_shift(y, weight, bias, normalized_shape).astype(x.dtype)


def rms_norm(
    x: jax.Array, normalized_shape: Sequence[int], weight: jax.Array | None = None, eps: float | None = None
) -> jax.Array:
    """`F.rms_norm`; `eps=None` is the machine epsilon of the dtype computed in (float32 for half precision)."""
    y = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    mean_square = jnp.square(y).mean(tuple(range(-len(normalized_shape), 0)), keepdims=True)
    y *= jax.lax.rsqrt(mean_square + (jnp.finfo(y.dtype).eps if eps is None else eps))
    return scale_and_shift(y, weight, None, normalized_shape).astype(x.dtype)


def group_norm(
    x: jax.Array,
    num_groups: int,
    weight: jax.Array | None = None,
    bias: jax.Array | None = None,
    eps: float = 1e-5,
) -> jax.Array:
    """`F.group_norm` of x (N, C, *): normalizes over the C / num_groups channels of a group and all later axes."""
    grouped = x.reshape(x.shape[0], num_groups, math.prod(x.shape[1:]) // num_groups)
    y = center_and_scale(grouped, (2,), eps).reshape(x.shape)
    return scale_and_shift(y, weight, bias, (-1,) + (1,) * (x.ndim - 2)).astype(x.dtype)


def instance_norm(
    x: jax.Array, *, weight: jax.Array | None = None, bias: jax.Array | None = None, eps: float = 1e-5
) -> jax.Array:
    """`F.instance_norm` of x (N, C, *spatial) with its own statistics (`use_input_stats=True`)."""
    y = center_and_scale(x, tuple(range(2, x.ndim)), eps)
    return scale_and_shift(y, weight, bias, (-1,) + (1,) * (x.ndim - 2)).astype(x.dtype)


def batch_norm(
    x: jax.Array,
    running_mean: jax.Array | None,
    running_var: jax.Array | None,
    weight: jax.Array | None = None,
    bias: jax.Array | None = None,
    training: bool = False,
    eps: float = 1e-5,
) -> jax.Array:
    """`F.batch_norm` of x (N, C, *): by the statistics of the batch in training, else by the running ones.

    PyTorch also updates the running statistics in place; for that see `updated_running_stats`.
    """
    shape = (-1,) + (1,) * (x.ndim - 2)
    if training:
        y = center_and_scale(x, (0, *range(2, x.ndim)), eps)
    else:
        y = (x - running_mean.reshape(shape)) * jax.lax.rsqrt(running_var.reshape(shape) + eps)
    return scale_and_shift(y, weight, bias, shape).astype(x.dtype)


def updated_running_stats(
    x: jax.Array, running_mean: jax.Array, running_var: jax.Array, momentum: float = 0.1
) -> tuple[jax.Array, jax.Array]:
    """The running mean and (unbiased) variance after a training step of `F.batch_norm` on x (N, C, *)."""
    axes = (0, *range(2, x.ndim))
    x = jax.lax.stop_gradient(x)
    mean, var = x.mean(axes), x.var(axes, ddof=1)
    return running_mean + momentum * (mean - running_mean), running_var + momentum * (var - running_var)


def normalize(x: jax.Array, p: float = 2.0, dim: int | Sequence[int] = 1, eps: float = 1e-12) -> jax.Array:
    """`F.normalize`: x / max(||x||_p, eps), the norm taken over one axis."""
    if p == 2 and isinstance(dim, int):
        return x / optax.safe_norm(x, eps, axis=dim, keepdims=True)
    norm = vector_norm(x, p, dim, keepdims=True)
    return x / jnp.where(norm < eps, eps, norm)


def local_response_norm(x: jax.Array, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> jax.Array:
    """`F.local_response_norm` of x (N, C, *): x / (k + alpha * mean(x**2 over `size` channels)) ** beta."""
    if x.size == 0:
        return x
    window = (1, size) + (1,) * (x.ndim - 2)
    padding = [(0, 0), (size // 2, (size - 1) // 2)] + [(0, 0)] * (x.ndim - 2)
    squares = jax.lax.reduce_window(jnp.square(x), np.zeros((), x.dtype), jax.lax.add, window, (1,) * x.ndim, padding)
    return x / (k + alpha * (squares / size).astype(x.dtype)) ** beta


def native_layer_norm(
    x: jax.Array, normalized_shape: Sequence[int], weight: jax.Array | None, bias: jax.Array | None, eps: float
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`torch.native_layer_norm`: what `layer_norm` gives, the means, and 1 / the standard deviations, as constants."""
    axes, fixed = tuple(range(-len(normalized_shape), 0)), jax.lax.stop_gradient(x)
    scale = jax.lax.rsqrt(jnp.var(fixed, axes, keepdims=True) + eps)
    return layer_norm(x, normalized_shape, weight, bias, eps), jnp.mean(fixed, axes, keepdims=True), scale


def native_group_norm(
    x: jax.Array, num_groups: int, weight: jax.Array | None, bias: jax.Array | None, eps: float
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`torch.native_group_norm`: what `group_norm` gives, the means, and 1 / the standard deviations."""
    grouped = x.reshape(x.shape[0], num_groups, math.prod(x.shape[1:]) // num_groups)
    scale = jax.lax.rsqrt(jnp.var(grouped, -1) + eps)
    return group_norm(x, num_groups, weight, bias, eps), jnp.mean(grouped, -1), scale


def native_batch_norm(
    x: jax.Array,
    weight: jax.Array | None,
    bias: jax.Array | None,
    running_mean: jax.Array | None,
    running_var: jax.Array | None,
    training: bool,
    eps: float,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`torch.native_batch_norm`: what `batch_norm` gives, and of training the means and 1 / the standard deviations."""
    y = batch_norm(x, running_mean, running_var, weight, bias, training, eps)
    if not training:
        return y, jnp.zeros(0, x.dtype), jnp.zeros(0, x.dtype)
    axes, fixed = (0, *range(2, x.ndim)), jax.lax.stop_gradient(x)
    return y, jnp.mean(fixed, axes), jax.lax.rsqrt(jnp.var(fixed, axes) + eps)
