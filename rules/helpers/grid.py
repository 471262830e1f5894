"""Sampling images at points: `grid_sample` and `affine_grid` with PyTorch's coordinates, channels first.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.grid_sample.html
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from .resize import cubic_weights


def affine_grid(theta: jax.Array, size: Sequence[int], align_corners: bool = False) -> jax.Array:
    """Points (N, *spatial, rank) of an affine map `theta` (N, rank, rank + 1), for an output of `size` (N, C, ...).

    The last axis holds x, y(, z): the reverse of the order of the image's axes.
    """
    axes = []
    for length in size[2:]:
        ends = 1.0 if align_corners else (length - 1) / length
        axes.append(np.linspace(-ends, ends, length) if length > 1 else np.zeros(1))
    points = np.stack([*reversed(np.meshgrid(*axes, indexing="ij")), np.ones(tuple(size[2:]))], axis=-1)
    return jnp.einsum("...j,nij->n...i", points.astype(theta.dtype), theta, precision="highest")


def grid_sample(
    x: jax.Array, grid: jax.Array, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> jax.Array:
    """Samples `x` (N, C, *size) at `grid` (N, *out, rank), giving (N, C, *out); rank is 2 or 3.

    Points are x, y(, z) in [-1, 1], from border to border, or from centre to centre of the border pixels with
    `align_corners`. Modes: bilinear, nearest, bicubic (rank 2). Padding modes: zeros, border, reflection.
    """
    rank = x.ndim - 2
    weight, inside, index = jnp.ones((), x.dtype), jnp.ones((), bool), []
    for axis, length in enumerate(x.shape[2:]):
        point = grid[..., rank - 1 - axis]
        position = (point + 1) / 2 * (length - 1) if align_corners else ((point + 1) * length - 1) / 2
        if mode == "bicubic":
            first = jnp.floor(position) - 1
            weights = cubic_weights(position - jnp.floor(position))
        else:
            position = pad_position(position, length, padding_mode, align_corners)
            first = jnp.round(position) if mode == "nearest" else jnp.floor(position)
            weights = [jnp.ones_like(position)] if mode == "nearest" else [1 - (position - first), position - first]
        # Neighbours along this axis go to an axis of their own, before those of the output.
        others = [1 + other for other in range(rank) if other != axis]
        pixel = jnp.expand_dims(jnp.stack([first + k for k in range(len(weights))], axis=1), others)
        if mode == "bicubic":
            pixel = pad_position(pixel, length, padding_mode, align_corners)
        weight = weight * jnp.expand_dims(jnp.stack(weights, axis=1), others)
        inside = inside & (pixel >= 0) & (pixel <= length - 1)
        index.append(jnp.clip(pixel, 0, length - 1).astype(jnp.int32))
    values = jax.vmap(lambda image, *at: image[(slice(None), *at)])(x, *index)
    values = jnp.where(jnp.expand_dims(inside, 1), values, 0) * jnp.expand_dims(weight, 1)
    return jnp.sum(values, axis=tuple(range(2, 2 + rank)))


def pad_position(position: jax.Array, length: int, padding_mode: str, align_corners: bool) -> jax.Array:
    """Moves positions outside an axis onto it; no gradient flows where a position is clipped, the ends included."""
    if padding_mode == "zeros":
        return position
    if padding_mode == "reflection":
        low = 0.0 if align_corners else -0.5
        span = length - 1 if align_corners else length
        distance = jnp.where(position < low, low - position, position - low)
        turns = jnp.floor(distance / max(span, 1))
        beyond = distance - turns * span
        position = low + jnp.where(turns % 2 == 0, beyond, span - beyond)
    clipped = jax.lax.stop_gradient(jnp.clip(position, 0, length - 1))
    return jnp.where((position > 0) & (position < length - 1), position, clipped)
