"""Sliding blocks as PyTorch lays them out: `F.unfold`, `F.fold` and `Tensor.unfold`.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Unfold.html and torch.nn.Fold
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from .pooling import hashable, per_axis


def block_positions(length: int, kernel: int, dilation: int, padding: int, stride: int) -> np.ndarray:
    """Positions (kernel, blocks) in a padded axis: element k of block b is at b * stride + k * dilation."""
    blocks = (length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    return np.arange(kernel)[:, None] * dilation + np.arange(blocks) * stride


def block_index(
    size: Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int],
    padding: int | Sequence[int],
    stride: int | Sequence[int],
) -> tuple[np.ndarray, np.ndarray]:
    """Row and column index of all blocks of a padded image; together they broadcast to (kh, kw, rows, columns)."""
    options = [per_axis(option, 2) for option in (kernel_size, dilation, padding, stride)]
    rows, columns = (block_positions(length, *option) for length, *option in zip(size, *options, strict=True))
    return rows[:, None, :, None], columns[None, :, None, :]


def unfold(
    x: jax.Array,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> jax.Array:
    """All blocks of images (N, C, H, W) as columns: (N, C * kh * kw, blocks). The axis N may be missing."""
    rows, columns = block_index(x.shape[-2:], kernel_size, dilation, padding, stride)
    top, left = per_axis(padding, 2)
    padded = jnp.pad(x, [(0, 0)] * (x.ndim - 2) + [(top, top), (left, left)])
    blocks = padded[..., rows, columns]
    kernel, count = math.prod(blocks.shape[-4:-2]), math.prod(blocks.shape[-2:])
    return blocks.reshape(*x.shape[:-3], x.shape[-3] * kernel, count)


def fold(
    x: jax.Array,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> jax.Array:
    """Adds blocks (N, C * kh * kw, blocks) up to images (N, C, H, W) of `output_size`. The axis N may be missing."""
    height, width = per_axis(output_size, 2)
    rows, columns = block_index((height, width), kernel_size, dilation, padding, stride)
    top, left = per_axis(padding, 2)
    shape = np.broadcast_shapes(rows.shape, columns.shape)
    blocks = x.reshape(*x.shape[:-2], -1, *shape)
    padded = jnp.zeros((*blocks.shape[:-4], height + 2 * top, width + 2 * left), x.dtype)
    return padded.at[..., rows, columns].add(blocks)[..., top : top + height, left : left + width]


def tensor_unfold(x: jax.Array, dimension: int, size: int, step: int) -> jax.Array:
    """Slices of length `size` of one axis, every `step`: the axis then counts slices, and a last axis holds them.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.unfold.html
    """
    x = jnp.moveaxis(x, dimension, -1)
    windows = x[..., block_positions(x.shape[-1], size, 1, 0, step).T]
    return jnp.moveaxis(windows, -2, dimension % x.ndim)


class Unfold(nnx.Module):
    """All blocks of images (N, C, H, W) as columns: (N, C * kh * kw, blocks)."""

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        self.kernel_size = hashable(kernel_size)
        self.dilation = hashable(dilation)
        self.padding = hashable(padding)
        self.stride = hashable(stride)

    def __call__(self, x: jax.Array) -> jax.Array:
        return unfold(x, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(nnx.Module):
    """Adds blocks (N, C * kh * kw, blocks) up to images (N, C, H, W) of `output_size`."""

    def __init__(
        self,
        output_size: int | Sequence[int],
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        self.output_size = hashable(output_size)
        self.kernel_size = hashable(kernel_size)
        self.dilation = hashable(dilation)
        self.padding = hashable(padding)
        self.stride = hashable(stride)

    def __call__(self, x: jax.Array) -> jax.Array:
        return fold(x, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
