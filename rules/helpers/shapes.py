"""Splitting and squeezing with the sizes that PyTorch gives."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def squeeze(x: jax.Array, axis: int | Sequence[int]) -> jax.Array:
    """Drops the axes of `axis` that have size 1; others stay, as in torch.squeeze (jnp.squeeze raises)."""
    if isinstance(axis, int):
        return x.squeeze(axis) if x.ndim and x.shape[axis] == 1 else x
    return x.squeeze(tuple(a for a in axis if x.ndim and x.shape[a] == 1))


def joined(arrays: Sequence[jax.Array], axis: int = 0) -> jax.Array:
    """Joins arrays along `axis` without the empty vectors among them, which loops start from, as torch.cat does."""
    kept = [x for x in arrays if x.shape != (0,)] or arrays
    return jnp.concatenate(kept, axis=axis, dtype=jnp.result_type(*arrays))


def split(x: jax.Array, sizes: int | Sequence[int], axis: int = 0) -> list[jax.Array]:
    """Splits into parts of `sizes`, or of one size with a smaller last part, as torch.split does."""
    if isinstance(sizes, int):
        return jnp.split(x, [*range(sizes, x.shape[axis], sizes)], axis=axis)
    return jnp.split(x, np.cumsum(sizes)[:-1], axis=axis)


def chunk(x: jax.Array, chunks: int, axis: int = 0) -> list[jax.Array]:
    """Splits into at most `chunks` parts of size ceil(length / chunks), as torch.chunk does: 7 in 3 is 3, 3, 1."""
    size = max(1, -(-x.shape[axis] // chunks))
    return jnp.split(x, list(range(size, x.shape[axis], size)), axis=axis)


def of_size_or_values(data: Any, dtype: Any = jnp.float32) -> jax.Array:
    """An array of the values of `data` or, if it is a whole number, of that length: PyTorch's old constructors."""
    if isinstance(data, tuple):
        raise TypeError("a tuple is a size if it is a shape, and values if not: use jnp.empty or jnp.array")
    is_size = np.ndim(data) == 0 and np.issubdtype(jnp.result_type(data), np.integer)
    return jnp.empty(int(data), dtype) if is_size else jnp.array(data, dtype)


def sliding_window(x: jax.Array, axis: int, size: int, step: int) -> jax.Array:
    """All windows of `size` along `axis`, `step` apart, on a new last axis, as torch.Tensor.unfold gives them."""
    starts = jnp.arange(0, x.shape[axis] - size + 1, step)
    windows = jnp.take(x, starts[:, None] + jnp.arange(size), axis=axis)
    return jnp.moveaxis(windows, axis + 1 if axis >= 0 else axis, -1)


def expand(x: jax.Array, shape: Sequence[int]) -> jax.Array:
    """Broadcasts x to `shape`, where -1 keeps the size of an axis, as torch.Tensor.expand."""
    kept = (1,) * (len(shape) - x.ndim) + x.shape
    return jnp.broadcast_to(x, [old if new == -1 else new for old, new in zip(kept, shape, strict=True)])


def sum_to_size(x: jax.Array, shape: int | Sequence[int]) -> jax.Array:
    """Sums x over what broadcasting would give an array of `shape`, as torch.Tensor.sum_to_size."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if shape and x.shape == shape:
        return x
    x = x.sum(tuple(range(x.ndim - len(shape))))
    return x.sum(tuple(i for i, n in enumerate(shape) if n == 1 != x.shape[i]), keepdims=True)
