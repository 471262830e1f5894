"""Pooling with PyTorch's arguments and channels-first axes, for one to three spatial axes.

Source: https://docs.pytorch.org/docs/stable/nn.functional.html#pooling-functions
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def per_axis(value: Any, rank: int) -> tuple[Any, ...]:
    """One number for each spatial axis: with two axes, `3` and `(3,)` both stand for `(3, 3)`."""
    return (*value,) * (rank if len(value) == 1 else 1) if isinstance(value, Sequence) else (value,) * rank


def hashable(value: Any) -> Any:
    """A list as a tuple: what a module holds besides arrays is a key of jit's cache."""
    return tuple(value) if isinstance(value, list) else value


def lowest(dtype: jnp.dtype) -> Any:
    """The smallest value of a dtype: minus infinity for floats."""
    return dtype.type(-jnp.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).min)


def padding_to_fit(
    size: Sequence[int], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int]
) -> list[tuple[int, int]]:
    """Padding before and after each axis for `ceil_mode`: the end is padded so that a last, partial window fits.

    A last window that would start beyond the input and its left padding is dropped, as in PyTorch.
    """
    pairs = []
    for length, window, step, pad in zip(size, kernel, stride, padding, strict=True):
        overhang = (window - length - 2 * pad) % step
        pairs.append((pad, pad + overhang if overhang < window - pad else pad))
    return pairs


def max_pool(
    rank: int,
    x: jax.Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum over windows of the last `rank` axes; of equal values the first one gets the gradient.

    With `return_indices` also the place of each maximum in the flattened last `rank` axes.
    """
    kernel = per_axis(kernel_size, rank)
    strides = per_axis(stride, rank) if stride else kernel
    pads = per_axis(padding, rank)
    pairs = [(pad, pad) for pad in pads]
    if ceil_mode:
        extent = [d * (k - 1) + 1 for k, d in zip(kernel, per_axis(dilation, rank), strict=True)]
        pairs = padding_to_fit(x.shape[-rank:], extent, strides, pads)
    if return_indices or max(per_axis(dilation, rank)) > 1:  # reduce_window has no gradient for dilated windows
        values, indices = max_pool_with_indices(x, kernel, strides, per_axis(dilation, rank), pairs)
        return (values, indices) if return_indices else values
    one = (1,) * (x.ndim - rank)
    around = "VALID" if padding == 0 and not ceil_mode else [(0, 0)] * len(one) + pairs
    return jax.lax.reduce_window(x, lowest(x.dtype), jax.lax.max, one + kernel, one + strides, around)


def max_pool_with_indices(
    x: jax.Array, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], padding: list[tuple[int, int]]
) -> tuple[jax.Array, jax.Array]:
    """Maximum of each window and its place in the flattened spatial axes, from a gather of all windows."""
    rank = len(kernel)
    size = x.shape[-rank:]
    place, inside = np.zeros((), int), np.ones((), bool)
    for axis in range(rank):
        (before, after), extent = padding[axis], dilation[axis] * (kernel[axis] - 1) + 1
        count = (size[axis] + before + after - extent) // stride[axis] + 1
        starts = np.arange(count) * stride[axis] - before
        position = starts[:, None] + np.arange(kernel[axis]) * dilation[axis]
        position = np.expand_dims(position, [a for a in range(2 * rank) if a not in (axis, rank + axis)])
        place = place * size[axis] + position
        inside = inside & (position >= 0) & (position < size[axis])
    place, inside = (a.reshape(*a.shape[:rank], math.prod(kernel)) for a in (np.where(inside, place, 0), inside))
    windows = jnp.where(inside, x.reshape(*x.shape[:-rank], -1)[..., place], lowest(x.dtype))
    best = jnp.argmax(windows, axis=-1, keepdims=True)
    values = jnp.take_along_axis(windows, best, axis=-1)
    indices = jnp.take_along_axis(jnp.broadcast_to(place, windows.shape), best, axis=-1)
    return values[..., 0], indices[..., 0]


def max_unpool(
    rank: int,
    x: jax.Array,
    indices: jax.Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> jax.Array:
    """Puts values back where a max pooling with `return_indices` took them from; zeros elsewhere."""
    kernel = per_axis(kernel_size, rank)
    strides = per_axis(stride, rank) if stride else kernel
    pads = per_axis(padding, rank)
    natural = [(n - 1) * s - 2 * p + k for n, k, s, p in zip(x.shape[-rank:], kernel, strides, pads, strict=True)]
    size = tuple(output_size[-rank:]) if output_size is not None else tuple(natural)
    lead = x.shape[:-rank]
    count = math.prod(lead)
    at = (jnp.arange(count)[:, None], indices.reshape(count, -1))
    values = x.reshape(count, -1)
    kept = jax.lax.stop_gradient(values)
    flat = jnp.zeros((count, math.prod(size)), x.dtype).at[at].set(kept)
    flat = flat.at[at].add(values - kept)  # where windows overlap, all of a place's values get its gradient
    return flat.reshape(*lead, *size)


def avg_pool(
    rank: int,
    x: jax.Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> jax.Array:
    """Mean over windows of the last `rank` axes. What `ceil_mode` adds at the end is never counted."""
    kernel = per_axis(kernel_size, rank)
    strides = per_axis(stride, rank) if stride else kernel
    pads = per_axis(padding, rank)
    size = x.shape[-rank:]
    if ceil_mode:  # XLA counts an axis of length 1 twice where a window hangs over its end
        kernel = tuple(min(k, n + 2 * pad) for k, n, pad in zip(kernel, size, pads, strict=True))
    pairs = padding_to_fit(size, kernel, strides, pads) if ceil_mode else [(pad, pad) for pad in pads]
    one = (1,) * (x.ndim - rank)
    around = "VALID" if padding == 0 and not ceil_mode else [(0, 0)] * len(one) + pairs
    sums = jax.lax.reduce_window(x, np.zeros((), x.dtype), jax.lax.add, one + kernel, one + strides, around)
    if divisor_override is not None:
        return (sums / divisor_override).astype(x.dtype)
    if not ceil_mode and (count_include_pad or padding == 0):
        return (sums / math.prod(kernel)).astype(x.dtype)
    counts = []
    for count, length, window, step, pad in zip(sums.shape[-rank:], size, kernel, strides, pads, strict=True):
        start = np.arange(count) * step - pad
        end = np.minimum(start + window, length + pad)
        counts.append(end - start if count_include_pad else np.minimum(end, length) - np.maximum(start, 0))
    return (sums / functools.reduce(np.multiply.outer, counts)).astype(x.dtype)


def adaptive_windows(x: jax.Array, axis: int, size: int) -> tuple[jax.Array, np.ndarray]:
    """Cuts one axis into `size` windows, from floor(i * L / size) to ceil((i + 1) * L / size).

    Returns the windows with axes (..., size, width) and which of their elements count: the widths differ by one
    where `size` does not divide the length.
    """
    x = jnp.moveaxis(x, axis, -1)
    length = x.shape[-1]
    if length % size == 0:
        return x.reshape(*x.shape[:-1], size, length // size), np.ones((), bool)
    start = np.arange(size) * length // size
    end = -(-np.arange(1, size + 1) * length // size)
    position = start[:, None] + np.arange((end - start).max())
    return x[..., np.minimum(position, length - 1)], position < end[:, None]


def adaptive_avg_pool(rank: int, x: jax.Array, output_size: int | None | Sequence[int | None]) -> jax.Array:
    """Mean over windows chosen so that the last `rank` axes get `output_size`; None keeps a length."""
    for axis, size in zip(range(-rank, 0), per_axis(output_size, rank), strict=True):
        if size is not None:
            windows, inside = adaptive_windows(x, axis, size)
            x = jnp.moveaxis(jnp.mean(windows, axis=-1, where=inside), -1, axis)
    return x


def adaptive_max_pool(
    rank: int, x: jax.Array, output_size: int | None | Sequence[int | None], return_indices: bool = False
) -> Any:
    """Maximum over windows chosen so that the last `rank` axes get `output_size`; None keeps a length.

    With `return_indices` also the place of each maximum in the flattened last `rank` axes.
    """
    places = np.arange(math.prod(x.shape[-rank:])).reshape(x.shape[-rank:])
    indices = jnp.broadcast_to(places, x.shape)
    for axis, size in reversed(list(zip(range(-rank, 0), per_axis(output_size, rank), strict=True))):
        if size is not None:
            windows, inside = adaptive_windows(x, axis, size)
            best = jnp.argmax(jnp.where(inside, windows, lowest(x.dtype)), axis=-1, keepdims=True)
            x = jnp.moveaxis(jnp.take_along_axis(windows, best, axis=-1)[..., 0], -1, axis)
            if return_indices:
                windows, _ = adaptive_windows(indices, axis, size)
                indices = jnp.moveaxis(jnp.take_along_axis(windows, best, axis=-1)[..., 0], -1, axis)
    return (x, indices) if return_indices else x


def lp_pool(
    rank: int,
    x: jax.Array,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> jax.Array:
    """The `norm_type`-th root of the windows' sums of powers; its gradient is 0 where a sum is 0."""
    mean = avg_pool(rank, x**norm_type, kernel_size, stride, 0, ceil_mode)
    positive = jnp.sign(mean) * jax.nn.relu(jnp.abs(mean))
    return (positive * math.prod(per_axis(kernel_size, rank))) ** (1.0 / norm_type)


max_pool1d = functools.partial(max_pool, 1)
max_pool2d = functools.partial(max_pool, 2)
max_pool3d = functools.partial(max_pool, 3)
max_unpool1d = functools.partial(max_unpool, 1)
max_unpool2d = functools.partial(max_unpool, 2)
max_unpool3d = functools.partial(max_unpool, 3)
avg_pool1d = functools.partial(avg_pool, 1)
avg_pool2d = functools.partial(avg_pool, 2)
avg_pool3d = functools.partial(avg_pool, 3)
adaptive_avg_pool1d = functools.partial(adaptive_avg_pool, 1)
adaptive_avg_pool2d = functools.partial(adaptive_avg_pool, 2)
adaptive_avg_pool3d = functools.partial(adaptive_avg_pool, 3)
adaptive_max_pool1d = functools.partial(adaptive_max_pool, 1)
adaptive_max_pool2d = functools.partial(adaptive_max_pool, 2)
adaptive_max_pool3d = functools.partial(adaptive_max_pool, 3)
lp_pool1d = functools.partial(lp_pool, 1)
lp_pool2d = functools.partial(lp_pool, 2)
lp_pool3d = functools.partial(lp_pool, 3)
