"""Sorting, extremes and order statistics that give values together with their indices, as PyTorch's do.

Values are gathered at their indices, so that the gradient goes to one element also where several are equal; jnp.max
and jnp.min divide it between them.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class ValuesAndIndices(NamedTuple):
    """What `torch.max(x, dim)`, `torch.sort` and their like return."""

    values: jax.Array
    indices: jax.Array


def take_with_indices(x: jax.Array, indices: jax.Array, axis: int, keepdims: bool) -> ValuesAndIndices:
    """The elements of x at `indices` (of length 1 along `axis`), without that axis unless `keepdims`."""
    values = jnp.take_along_axis(x, indices, axis)
    if keepdims:
        return ValuesAndIndices(values, indices)
    return ValuesAndIndices(jnp.squeeze(values, axis), jnp.squeeze(indices, axis))


def max_with_indices(x: jax.Array, axis: int, keepdims: bool = False) -> ValuesAndIndices:
    """The largest elements along `axis` and where they are (the first of equal ones), as `torch.max(x, dim)`."""
    return take_with_indices(x, jnp.argmax(x, axis, keepdims=True), axis, keepdims)


def min_with_indices(x: jax.Array, axis: int, keepdims: bool = False) -> ValuesAndIndices:
    """The smallest elements along `axis` and where they are (the first of equal ones), as `torch.min(x, dim)`."""
    return take_with_indices(x, jnp.argmin(x, axis, keepdims=True), axis, keepdims)


def sort_with_indices(x: jax.Array, axis: int = -1, descending: bool = False) -> ValuesAndIndices:
    """Sorts x along an axis and tells each element's index in x, as `torch.sort`. Equal elements keep their order."""
    indices = jnp.argsort(x, axis, descending=descending)
    return ValuesAndIndices(jnp.take_along_axis(x, indices, axis), indices)


def top_k(x: jax.Array, k: int, axis: int = -1, largest: bool = True) -> ValuesAndIndices:
    """The k largest (or smallest) elements along `axis` in order, and their indices, as `torch.topk`."""
    if largest:
        values, indices = jax.lax.top_k(x, k, axis=axis)
        return ValuesAndIndices(values, indices.astype(int))
    indices = jax.lax.slice_in_dim(jnp.argsort(x, axis), 0, k, axis=axis)
    return ValuesAndIndices(jnp.take_along_axis(x, indices, axis), indices)


def kth_value(x: jax.Array, k: int, axis: int = -1, keepdims: bool = False) -> ValuesAndIndices:
    """The k-th smallest elements along `axis` (counted from 1) and their indices, as `torch.kthvalue`."""
    indices = jax.lax.slice_in_dim(jnp.argsort(x, axis), k - 1, k, axis=axis)
    return take_with_indices(x, indices, axis, keepdims)


def lower_median(x: jax.Array) -> jax.Array:
    """The median of all elements as `torch.median`: the lower of the two middle ones, NaN where there is a NaN."""
    return element_of_all(x, lambda x: median_with_indices(x.ravel(), 0).values)


def element_of_all(x: jax.Array, find: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """The element of x that `find` gives; those that equal it have equal shares of its gradient, as in PyTorch."""

    @jax.custom_jvp
    def chosen(x: jax.Array) -> jax.Array:
        return find(x)

    @chosen.defjvp
    def shared(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
        value = find(primals[0])
        equal = (primals[0] == value) | (jnp.isnan(primals[0]) & jnp.isnan(value))
        return value, jnp.sum(jnp.where(equal, tangents[0], 0)) / jnp.sum(equal)

    return chosen(x)


def median_with_indices(x: jax.Array, axis: int, keepdims: bool = False) -> ValuesAndIndices:
    """Medians along `axis` (the lower of two middle elements; NaN if any) and their indices, as `torch.median`."""
    middle = (x.shape[axis] - 1) // 2
    indices = jax.lax.slice_in_dim(jnp.argsort(x, axis), middle, middle + 1, axis=axis)
    if jnp.issubdtype(x.dtype, jnp.floating):
        nan = jnp.isnan(x)
        first_nan = jnp.argmax(nan, axis, keepdims=True)
        indices = jnp.where(jnp.any(nan, axis, keepdims=True), first_nan, indices)
    return take_with_indices(x, indices, axis, keepdims)


def lower_nanmedian(x: jax.Array) -> jax.Array:
    """The median of all elements that aren't NaN as `torch.nanmedian`: the lower of the two middle ones."""
    return element_of_all(x, lambda x: nanmedian_with_indices(x.ravel(), 0).values)


def nanmedian_with_indices(x: jax.Array, axis: int, keepdims: bool = False) -> ValuesAndIndices:
    """Medians along `axis` of the elements that aren't NaN, and their indices, as `torch.nanmedian`."""
    middle = jnp.maximum(jnp.sum(~jnp.isnan(x), axis, keepdims=True) - 1, 0) // 2
    indices = jnp.take_along_axis(jnp.argsort(x, axis), middle, axis)
    return take_with_indices(x, indices, axis, keepdims)


def mode_with_indices(x: jax.Array, axis: int = -1, keepdims: bool = False) -> ValuesAndIndices:
    """The most frequent elements along `axis` (the smallest of equally frequent ones), as `torch.mode`.

    The index is that of the last such element. Takes memory quadratic in the length of `axis`.
    """
    rows = jnp.moveaxis(x, axis, -1)
    counts = jnp.sum(rows[..., :, None] == rows[..., None, :], axis=-1)
    frequent = counts == jnp.max(counts, axis=-1, keepdims=True)
    highest = jnp.max(rows, axis=-1, keepdims=True)
    value = jnp.min(jnp.where(frequent, rows, highest), axis=-1, keepdims=True)
    is_mode = rows == value
    last = is_mode.shape[-1] - 1 - jnp.argmax(jnp.flip(is_mode, -1), axis=-1, keepdims=True)
    return take_with_indices(x, jnp.moveaxis(last, -1, axis), axis, keepdims)


def cummax_with_indices(x: jax.Array, axis: int) -> ValuesAndIndices:
    """The largest element so far along `axis` and its index (the last of equal ones), as `torch.cummax`."""
    return running_extreme(x, axis, jax.lax.cummax)


def cummin_with_indices(x: jax.Array, axis: int) -> ValuesAndIndices:
    """The smallest element so far along `axis` and its index (the last of equal ones), as `torch.cummin`."""
    return running_extreme(x, axis, jax.lax.cummin)


def running_extreme(x: jax.Array, axis: int, cumulative: Callable[..., jax.Array]) -> ValuesAndIndices:
    if x.ndim == 0:
        return ValuesAndIndices(x, jnp.zeros((), int))
    axis %= x.ndim
    numbers = x.astype(jnp.int8) if x.dtype == bool else x
    positions = jnp.indices(x.shape, dtype=int, sparse=True)[axis]
    indices = jax.lax.cummax(jnp.where(numbers == cumulative(numbers, axis), positions, 0), axis)
    return ValuesAndIndices(jnp.take_along_axis(x, indices, axis), indices)


def unique_consecutive(
    x: jax.Array, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None
) -> Any:
    """`torch.unique_consecutive`: the first of equal neighbours, the run of each element, lengths; not under jit."""
    items = x.ravel() if axis is None else jnp.moveaxis(x, axis, 0)
    changes = (items[1:] != items[:-1]).any(axis=tuple(range(1, items.ndim)))
    first = jnp.concatenate([jnp.ones(min(len(items), 1), bool), changes])
    starts = jnp.flatnonzero(first)
    values = items[starts] if axis is None else jnp.moveaxis(items[starts], 0, axis)
    results = [values]
    if return_inverse:
        run = jnp.cumsum(first) - 1
        results.append(run.reshape(x.shape) if axis is None else run)
    if return_counts:
        results.append(jnp.diff(starts, append=len(items)))
    return tuple(results) if len(results) > 1 else values


class Histogram(NamedTuple):
    """What `torch.histogramdd` returns."""

    hist: jax.Array
    bin_edges: tuple[jax.Array, ...]


def histogramdd(
    x: jax.Array,
    bins: Any,
    range: Sequence[float] | None = None,
    weight: jax.Array | None = None,
    density: bool = False,
) -> Histogram:
    """`torch.histogramdd` of points (..., n), with the bounds of the n axes one after the other in `range`."""
    points = x.reshape(-1, x.shape[-1])
    bounds = None if range is None else list(zip(range[::2], range[1::2], strict=True))
    if bounds is None and not len(points):
        bounds = [(0, 1)] * points.shape[-1]
    weight = None if weight is None else weight.ravel()
    counts, edges = jnp.histogramdd(points, bins, bounds, weight, density)
    return Histogram(counts.astype(x.dtype), tuple(edges))


def searchsorted(
    sorted_sequence: jax.Array, values: jax.Array, side: str = "left", sorter: jax.Array | None = None
) -> jax.Array:
    """`torch.searchsorted`: a sequence, or one for each row of values."""
    if sorter is not None:
        sorted_sequence = jnp.take_along_axis(sorted_sequence, sorter, axis=-1)
    if sorted_sequence.ndim == 1:
        return jnp.searchsorted(sorted_sequence, values, side=side)
    search = functools.partial(jnp.searchsorted, side=side)
    return jnp.vectorize(search, signature="(n),(m)->(m)")(sorted_sequence, values)
