"""Layers as functions of a dict of parameters, under PyTorch's names and in its layouts; target ``jax`` copies these.

`init_*` make the parameters with PyTorch's initial distributions. Source: https://docs.pytorch.org/docs/stable/nn.html
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .conv import conv_nd, conv_transpose_nd
from .embedding import embedding
from .math import affine
from .norm_functions import group_norm, layer_norm, rms_norm, scale_and_shift
from .pooling import per_axis


def split_key(key: jax.Array | None, number: int = 2) -> Any:
    """As `jax.random.split`; None, where nothing is drawn, gives None."""
    return [None] * number if key is None else jax.random.split(key, number)


def key_stream(key: jax.Array) -> Iterator[jax.Array]:
    """Keys without end, each to be used once."""
    while True:
        key, subkey = jax.random.split(key)
        yield subkey


def unzip(pairs: Iterable[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    """[(params, state), ...] as a list of params and a list of states."""
    both = list(pairs)
    return [params for params, _ in both], [state for _, state in both]


def init_uniform(key: jax.Array, shape: Sequence[int], fan_in: int, size: int | None = None) -> dict[str, jax.Array]:
    """A weight, and a bias of `size` unless that is None, uniform in +-1/sqrt(fan_in): PyTorch's default."""
    bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
    weight_key, bias_key = jax.random.split(key)
    params = {"weight": jax.random.uniform(weight_key, shape, minval=-bound, maxval=bound)}
    if size is not None:
        params["bias"] = jax.random.uniform(bias_key, (size,), minval=-bound, maxval=bound)
    return params


def init_dense(key: jax.Array, in_features: int, out_features: int, bias: bool = True) -> dict[str, jax.Array]:
    """The parameters of `dense`: weight (out, in) and bias (out,)."""
    return init_uniform(key, (out_features, in_features), in_features, out_features if bias else None)


def dense(params: Mapping[str, jax.Array], x: jax.Array) -> jax.Array:
    """Maps (..., in) to (..., out)."""
    return affine(x, params["weight"], params.get("bias"))


def init_conv(
    key: jax.Array,
    in_channels: int,
    out_channels: int,
    kernel_size: int | Sequence[int],
    groups: int = 1,
    bias: bool = True,
    rank: int = 2,
) -> dict[str, jax.Array]:
    """The parameters of `convolve` over `rank` axes: weight (out, in / groups, *kernel_size) and bias (out,)."""
    shape = (out_channels, in_channels // groups, *per_axis(kernel_size, rank))
    return init_uniform(key, shape, math.prod(shape[1:]), out_channels if bias else None)


def convolve(
    params: Mapping[str, jax.Array],
    x: jax.Array,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> jax.Array:
    """A convolution of x (N, in, *spatial) or (in, *spatial)."""
    return conv_nd(x, params["weight"], params.get("bias"), stride, padding, dilation, groups)


def init_conv_transpose(
    key: jax.Array,
    in_channels: int,
    out_channels: int,
    kernel_size: int | Sequence[int],
    groups: int = 1,
    bias: bool = True,
    rank: int = 2,
) -> dict[str, jax.Array]:
    """The parameters of `conv_transpose`: weight (in, out / groups, *kernel_size) and bias (out,)."""
    shape = (in_channels, out_channels // groups, *per_axis(kernel_size, rank))
    return init_uniform(key, shape, math.prod(shape[1:]), out_channels if bias else None)


def conv_transpose(
    params: Mapping[str, jax.Array],
    x: jax.Array,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> jax.Array:
    """A transposed convolution of x (N, in, *spatial) or (in, *spatial)."""
    bias = params.get("bias")
    return conv_transpose_nd(x, params["weight"], bias, stride, padding, output_padding, groups, dilation)


def init_embed(
    key: jax.Array, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None
) -> dict[str, jax.Array]:
    """The table of `embed`: weight (num_embeddings, embedding_dim), standard normal, zero at `padding_idx`."""
    table = jax.random.normal(key, (num_embeddings, embedding_dim))
    return {"weight": table if padding_idx is None else table.at[padding_idx].set(0)}


def embed(params: Mapping[str, jax.Array], ids: jax.Array, padding_idx: int | None = None) -> jax.Array:
    """The rows at `ids`, (*ids.shape, features)."""
    return embedding(ids, params["weight"], padding_idx)


def init_norm(shape: int | Sequence[int], affine: bool = True, bias: bool = True) -> dict[str, jax.Array]:
    """Scales of 1 and shifts of 0."""
    if not affine:
        return {}
    return {"weight": jnp.ones(shape), "bias": jnp.zeros(shape)} if bias else {"weight": jnp.ones(shape)}


def init_running_stats(num_features: int) -> dict[str, jax.Array]:
    """The state of `batchnorm`."""
    return {"running_mean": jnp.zeros(num_features), "running_var": jnp.ones(num_features)}


def batchnorm(
    params: Mapping[str, jax.Array],
    state: Mapping[str, jax.Array],
    x: jax.Array,
    *,
    train: bool,
    eps: float = 1e-5,
    momentum: float = 0.1,
) -> tuple[jax.Array, Mapping[str, jax.Array]]:
    """Normalizes x (N, C, ...) over all axes but C: by its own statistics in training, else by the running ones.

    Returns:
      The result, and the state: in training, the running mean and variance move by `momentum` to those of x, the
      variance being the unbiased one.
    """
    shape = (1, -1) + (1,) * (x.ndim - 2)
    mean, var = state["running_mean"], state["running_var"]
    if train and x.size:
        axes = (0, *range(2, x.ndim))
        count = x.size // x.shape[1]
        if count == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {x.shape}")
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        mean, var = wide.mean(axes), wide.var(axes)
        new = {"running_mean": mean, "running_var": var * (count / (count - 1))}
        state = {
            name: (1 - momentum) * old + momentum * jax.lax.stop_gradient(new[name]) for name, old in state.items()
        }
    y = (x - mean.reshape(shape)) * jax.lax.rsqrt(var.reshape(shape) + eps)
    return scale_and_shift(y, params.get("weight"), params.get("bias"), shape).astype(x.dtype), state


def layernorm(params: Mapping[str, jax.Array], x: jax.Array, eps: float = 1e-5) -> jax.Array:
    """Normalizes over the last axes of x, those that the weight has."""
    return layer_norm(x, params["weight"].shape, params["weight"], params.get("bias"), eps)


def rmsnorm(params: Mapping[str, jax.Array], x: jax.Array, eps: float | None = None) -> jax.Array:
    """Divides x by the root of its mean square over the last axes, those that the weight has."""
    return rms_norm(x, params["weight"].shape, params["weight"], eps)


def groupnorm(params: Mapping[str, jax.Array], x: jax.Array, num_groups: int, eps: float = 1e-5) -> jax.Array:
    """Normalizes x (N, C, ...) over the channels of each group and all later axes."""
    return group_norm(x, num_groups, params.get("weight"), params.get("bias"), eps)


def drop(
    key: jax.Array | None, x: jax.Array, rate: float = 0.5, *, train: bool, shared: Sequence[int] = ()
) -> jax.Array:
    """Dropout: in training, zeros with probability `rate`, and the rest divided by 1 - rate.

    Args:
      key: for the mask; may be None outside of training.
      x: any shape.
      rate: the probability of a zero.
      train: returns x if False.
      shared: axes whose elements share one draw.
    """
    if not train or rate == 0:
        return x
    if key is None:
        raise ValueError("dropout in training needs a key")
    if rate == 1:
        return jnp.zeros_like(x)
    shape = [1 if axis in shared else n for axis, n in enumerate(x.shape)] if shared else x.shape
    kept = jax.random.bernoulli(key, 1 - rate, shape)
    return jnp.where(kept, x / (1 - rate), jnp.zeros_like(x))


def drop_channels(key: jax.Array | None, x: jax.Array, rate: float = 0.5, *, train: bool) -> jax.Array:
    """Dropout of whole channels of (N, C, ...)."""
    return drop(key, x, rate, train=train, shared=range(2, x.ndim))
