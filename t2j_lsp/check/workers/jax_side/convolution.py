"""Convolutions in float64 on the CPU, where XLA has only a loop over single elements for them.

A convolution is a matrix product of the windows of its input (the columns of im2col, as torch computes it in float64,
too) with its kernel, which XLA gives to a fast routine: for a kernel of 3 x 3 x 3 and 64 channels, 40 times as fast. It
is the same sum in another order. Gradients of convolutions are convolutions, and go the same way.

Only the lowering is replaced, so that programs, their jaxprs and their gradients stay what they are. Small ones stay
XLA's, which compiles them in less time.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.interpreters import mlir

MANY = 2_000_000
"""Products in one convolution, from which compiling the windows pays."""
_LARGEST = 2**26
"""Elements that all windows may have together: half a gigabyte, of which there are two copies. Beyond that, one example
goes after the other."""


def install() -> None:
    """Replaces the lowering. Where a JAX version has no such function, nothing is replaced."""
    try:
        from jax._src.lax.convolution import _conv_general_dilated_lower as original
    except ImportError:
        return

    def lowered(ctx: Any, lhs: Any, rhs: Any, **parameters: Any) -> Any:
        if _is_slow(ctx, parameters):
            split = _is_split(_windows_of(ctx, parameters), parameters["batch_group_count"])
            function = example_by_example if split else by_windows
            return mlir.lower_fun(function, multiple_results=False)(ctx, lhs, rhs, **parameters)
        return original(ctx, lhs, rhs, **parameters)  # type: ignore[no-untyped-call]

    mlir.register_lowering(lax.conv_general_dilated_p, lowered, platform="cpu")


def _windows_of(ctx: Any, parameters: dict[str, Any]) -> int:
    """The number of elements of all windows."""
    (_, rhs), (out,) = ctx.avals_in, ctx.avals_out
    numbers = parameters["dimension_numbers"]
    each = math.prod(rhs.shape) // max(rhs.shape[numbers.rhs_spec[0]], 1)
    places = math.prod(out.shape) // max(out.shape[numbers.out_spec[1]], 1)
    return int(places * each * parameters["feature_group_count"] * parameters["batch_group_count"])


def _is_slow(ctx: Any, parameters: dict[str, Any]) -> bool:
    """Whether XLA would go through more than `MANY` products in float64 one by one."""
    (lhs, rhs), (out,) = ctx.avals_in, ctx.avals_out
    if lhs.dtype != np.float64 or rhs.dtype != np.float64:
        return False
    shapes = (
        parameters["window_strides"],
        parameters["lhs_dilation"],
        parameters["rhs_dilation"],
        *parameters["padding"],
    )
    if not all(isinstance(n, int) for shape in (lhs.shape, rhs.shape, out.shape, *shapes) for n in shape):
        return False
    numbers = parameters["dimension_numbers"]
    each = math.prod(rhs.shape) // max(rhs.shape[numbers.rhs_spec[0]], 1)
    windows = _windows_of(ctx, parameters)
    windows //= lhs.shape[numbers.lhs_spec[0]] if _is_split(windows, parameters["batch_group_count"]) else 1
    return (
        math.prod(out.shape) * each >= MANY
        and windows <= 2 * _LARGEST
        and 0 not in (*lhs.shape, *rhs.shape, *out.shape)
    )


def _is_split(windows: int, batch_group_count: int) -> bool:
    """Whether a convolution of so many elements in windows goes example by example."""
    return windows > _LARGEST and batch_group_count == 1


def example_by_example(lhs: jax.Array, rhs: jax.Array, *, dimension_numbers: Any, **parameters: Any) -> jax.Array:
    """As `by_windows`, with the memory of one example."""
    source, target = dimension_numbers.lhs_spec[0], dimension_numbers.out_spec[0]

    def one(example: jax.Array) -> jax.Array:
        whole = jnp.expand_dims(example, source)
        return by_windows(whole, rhs, dimension_numbers=dimension_numbers, **parameters).squeeze(target)

    return jnp.moveaxis(lax.map(one, jnp.moveaxis(lhs, source, 0)), 0, target)


def by_windows(
    lhs: jax.Array,
    rhs: jax.Array,
    *,
    window_strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    **_: Any,
) -> jax.Array:
    """``lax.conv_general_dilated`` as one matrix product for each group.

    ``lhs`` (N, C, *spatial) and ``rhs`` (O, I, *kernel), in the axes that ``dimension_numbers`` says.
    """
    left = lhs.transpose(dimension_numbers.lhs_spec)
    right = rhs.transpose(dimension_numbers.rhs_spec)
    kernel = right.shape[2:]
    inner = [(low, high, dilation - 1) for (low, high), dilation in zip(padding, lhs_dilation, strict=True)]
    left = lax.pad(left, jnp.zeros((), left.dtype), [(0, 0, 0), (0, 0, 0), *inner])
    for axis, (length, stride, dilation) in enumerate(zip(kernel, window_strides, rhs_dilation, strict=True)):
        left = _windows(left, 2 + 2 * axis, length, stride, dilation)
    rank = len(kernel)
    places = left.shape[2 : 2 + 2 * rank : 2]
    # (N, C, out, k, out, k, ...) becomes (G, N out..., I k...), and (O, I, k, k, ...) becomes (G, O, I k...).
    batch, channels, outputs = left.shape[0], left.shape[1], right.shape[0]
    groups = max(feature_group_count, batch_group_count)
    if batch_group_count > 1:
        left = left.reshape(groups, batch // groups, channels, *left.shape[2:])
    else:
        left = left.reshape(batch, groups, channels // groups, *left.shape[2:]).swapaxes(0, 1)
    spots, taps = range(3, 3 + 2 * rank, 2), range(4, 4 + 2 * rank, 2)
    left = left.transpose(0, 1, *spots, 2, *taps)
    count = math.prod(right.shape[1:])
    left = left.reshape(groups, -1, count)
    right = right.reshape(groups, outputs // groups, count)
    if groups == 1:
        product = (left[0] @ right[0].T)[None]
    else:
        product = lax.dot_general(left, right, (((2,), (2,)), ((0,), (0,))))
    product = product.reshape(groups, -1, *places, outputs // groups)
    # (G, N, out..., O / G) becomes (N, O, out...).
    product = product.transpose(1, 0, 2 + rank, *range(2, 2 + rank))
    product = product.reshape(product.shape[0], outputs, *places)
    order = np.argsort(dimension_numbers.out_spec)
    return product.transpose(*(int(axis) for axis in order))


def _windows(array: jax.Array, axis: int, length: int, stride: int, dilation: int) -> jax.Array:
    """An axis of positions becomes two: places of the window, and positions in it."""
    size = array.shape[axis]
    places = (size - (length - 1) * dilation - 1) // stride + 1
    if places <= length:
        # As a list of windows, where these are fewer than positions in one.
        last = (length - 1) * dilation + 1
        parts = [lax.slice_in_dim(array, n * stride, n * stride + last, dilation, axis) for n in range(places)]
        return jnp.stack(parts, axis)
    last = (places - 1) * stride + 1
    parts = [lax.slice_in_dim(array, n * dilation, n * dilation + last, stride, axis) for n in range(length)]
    return jnp.stack(parts, axis + 1)
