"""Reads and writes by indices, as torch.gather and torch.scatter, and by masks."""

import jax
import jax.numpy as jnp


def along_axis(index: jax.Array, axis: int) -> tuple[jax.Array, ...]:
    """The index with which `x.at[...]` writes as torch.scatter does: `index` on `axis`, each place itself elsewhere.

    With i of shape (2, 3), `x.at[along_axis(i, 1)].set(y)` sets x[a, i[a, b]] to y[a, b].
    """
    grid = list(jnp.indices(index.shape, sparse=True))
    grid[axis] = index
    return tuple(grid)


def gather(x: jax.Array, index: jax.Array, axis: int) -> jax.Array:
    """`torch.gather`: jnp.take_along_axis with an index that may be smaller than x along other axes."""
    part = tuple(slice(None) if i == axis % x.ndim else slice(size) for i, size in enumerate(index.shape))
    return jnp.take_along_axis(x[part], index, axis)


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
