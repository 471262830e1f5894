"""Reads and writes by indices, as torch.gather and torch.scatter, and by masks."""

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def along_axis(index: jax.Array, axis: int) -> tuple[jax.Array, ...]:
    """The index with which `x.at[...]` writes as torch.scatter does: `index` on `axis`, each place itself elsewhere.

    With i of shape (2, 3), `x.at[along_axis(i, 1)].set(y)` sets x[a, i[a, b]] to y[a, b].
    """
    grid = list(jnp.indices(index.shape, sparse=True))
    if index.ndim:
        grid[axis] = index
    return tuple(grid)


def gather(x: jax.Array, index: jax.Array, axis: int) -> jax.Array:
    """`torch.gather`: jnp.take_along_axis with an index that may be smaller than x along other axes."""
    if x.ndim == 0 or index.size == 0:
        return jnp.full(index.shape, x if x.ndim == 0 else 0, x.dtype)
    part = [slice(size) for size in index.shape]
    part[axis] = slice(None)
    return jnp.take_along_axis(x[tuple(part)], index, axis)


def masked_scatter(x: jax.Array, mask: jax.Array, source: jax.Array) -> jax.Array:
    """Fills the places of x where `mask` is true with the values of `source` in order, as torch.masked_scatter does."""
    x, mask = jnp.broadcast_arrays(x, mask)
    order = jnp.cumsum(mask.ravel()).reshape(x.shape) - 1
    return jnp.where(mask, source.ravel()[order], x)


def masked_select(x: jax.Array, mask: jax.Array) -> jax.Array:
    """The elements of x where `mask` is true, both broadcast, as torch.masked_select; not under jit."""
    x, mask = jnp.broadcast_arrays(x, mask)
    return x[mask]


def set_where(x: jax.Array, mask: jax.Array, value: jax.Array | complex) -> jax.Array:
    """Puts `value` where `mask` is true, in the dtype of x, as `x[mask] = value` does; works under jit.

    `mask` has the first axes of x. `value` is one number, or has an element for each of x.
    """
    mask = jnp.expand_dims(mask, tuple(range(mask.ndim, x.ndim)))
    return jnp.where(mask, jnp.asarray(value).astype(x.dtype), x)


def set_at(x: jax.Array, index: jax.Array, value: jax.Array | complex) -> jax.Array:
    """`x[index] = value` of one number, with places or with a mask, which under jit is a choice."""
    return set_where(x, index, value) if jnp.asarray(index).dtype == bool else x.at[index].set(value)


def reduce_at(x: jax.Array, places: Any, source: jax.Array, reduce: str, include_self: bool = True) -> jax.Array:
    """Reduces `source` into x at `places`, as torch.scatter_reduce and torch.index_reduce do.

    `include_self=False` leaves out what stood there. `reduce` is "sum", "prod", "mean", "amax" or "amin".
    """
    limits = jnp.finfo(x.dtype) if jnp.issubdtype(x.dtype, jnp.inexact) else jnp.iinfo(x.dtype)
    infinite = isinstance(limits, jnp.finfo)
    least, greatest = (-jnp.inf, jnp.inf) if infinite else (limits.min, limits.max)
    identity = {"prod": 1, "amax": least, "amin": greatest}.get(reduce, 0)
    written = jnp.zeros(x.shape, bool).at[places].set(True)
    start = x if include_self else jnp.where(written, identity, x)
    method = {"prod": "multiply", "amax": "max", "amin": "min"}.get(reduce, "add")
    if reduce == "prod" and infinite:
        return multiply_at(start, places, source)
    result: jax.Array = getattr(start.at[places], method)(source)
    if reduce != "mean":
        return result
    count = jnp.where(written & (not include_self), 0, 1).at[places].add(1)
    return result / count.astype(x.dtype) if infinite else result // count.astype(x.dtype)


def multiply_at(x: jax.Array, places: Any, source: jax.Array) -> jax.Array:
    """x.at[places].multiply(source) of floating-point numbers, with a gradient also where places repeat."""

    @jax.custom_jvp
    def product(x: jax.Array, source: jax.Array) -> jax.Array:
        return x.at[places].multiply(source)

    @product.defjvp
    def slope(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
        x, factors = primals[0], jnp.broadcast_to(primals[1], primals[0][places].shape)
        zero = factors == 0
        nonzero = jnp.where(zero, 1, factors)
        zeros = jnp.zeros(x.shape, int).at[places].add(zero)
        rest = jnp.where(zeros[places] == zero, x.at[places].multiply(nonzero)[places] / nonzero, 0)
        of_source = jnp.zeros_like(x).at[places].add(rest * tangents[1])
        return product(*primals), tangents[0] * jnp.ones_like(x).at[places].multiply(factors) + of_source

    return product(x, source)


def strided_index(size: Sequence[int], stride: Sequence[int], offset: int = 0) -> np.ndarray:
    """Where `torch.as_strided` takes its elements from, counted in the order of a contiguous tensor."""
    steps = np.ix_(*(np.arange(n) * step for n, step in zip(size, stride, strict=True)))
    return np.asarray(sum(steps, offset))


def diagonal_scatter(x: jax.Array, source: jax.Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> jax.Array:
    """Writes `source` on a diagonal of the matrices that the axes dim1 and dim2 are, as torch.diagonal_scatter."""
    matrices = jnp.moveaxis(x, (dim1, dim2), (-2, -1))
    steps = jnp.arange(source.shape[-1])
    written = matrices.at[..., steps - min(offset, 0), steps + max(offset, 0)].set(source)
    return jnp.moveaxis(written, (-2, -1), (dim1, dim2))


def combinations(x: jax.Array, r: int = 2, with_replacement: bool = False) -> jax.Array:
    """All choices of r elements of a vector, in its order, as torch.combinations."""
    choices = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return x[np.array(list(choices(range(len(x)), r)), int).reshape(-1, r)]


def hash_tensor(x: jax.Array, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> jax.Array:
    """`torch.hash_tensor`: the exclusive or of all elements' 64 bits over `axis`, which takes `jax_enable_x64`."""
    wide = x.astype(jnp.float64 if jnp.issubdtype(x.dtype, jnp.floating) else jnp.int64)
    bits = jax.lax.bitcast_convert_type(wide, jnp.uint64)
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    reduced = tuple(one % max(x.ndim, 1) for one in axes) if x.ndim else ()
    hashed = jax.lax.reduce(bits, np.uint64(0), jax.lax.bitwise_xor, reduced)
    return jnp.expand_dims(hashed, reduced) if keepdims else hashed
