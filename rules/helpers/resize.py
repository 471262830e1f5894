"""`interpolate` with PyTorch's sampling positions, and the upsampling layers, channels first.

`jax.image.resize` samples at other positions: nearest at pixel centres (PyTorch's "nearest-exact"), cubic with
a = -0.5 and renormalised borders, antialiased by default, and without `align_corners`.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from .pooling import adaptive_avg_pool, hashable, per_axis


def interpolate(
    x: jax.Array,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
    channels_last: bool = False,
) -> jax.Array:
    """Resizes the axes after the first two of `x`; to `size`; to floor(length * `scale_factor`).

    With `channels_last`, those between the first and the last one. `mode` is one of nearest, nearest-exact, linear,
    bilinear, trilinear, bicubic and area. A given `scale_factor` also sets the distance of the sampling positions.
    `recompute_scale_factor` takes that from the sizes.
    """
    rank, first = x.ndim - 2, 1 if channels_last else 2
    if size is not None:
        sizes = per_axis(size, rank)
    else:
        factors = per_axis(scale_factor, rank)
        sizes = tuple(int(length * factor) for length, factor in zip(x.shape[first:], factors, strict=False))
    if mode == "area":
        pooled = adaptive_avg_pool(rank, jnp.moveaxis(x, -1, 1) if channels_last else x, sizes)
        return jnp.moveaxis(pooled, 1, -1) if channels_last else pooled
    dtype = jnp.promote_types(x.dtype, jnp.float32)
    for axis, new in enumerate(sizes, start=first):
        length, lines = x.shape[axis], jnp.moveaxis(x, axis, -1)
        step = length / new if size is not None or recompute_scale_factor else 1 / factors[axis - first]
        if mode in ("nearest", "nearest-exact"):
            lines = lines[..., nearest_positions(length, new, step, mode == "nearest-exact")]
        else:
            positions, weights = resize_weights(length, new, step, mode == "bicubic", bool(align_corners), antialias)
            lines = jnp.sum(lines[..., positions] * weights.astype(dtype), axis=-2).astype(x.dtype)
        x = jnp.moveaxis(lines, -1, axis)
    return x


def nearest_positions(length: int, size: int, step: float, exact: bool) -> np.ndarray:
    """The input position of every output position, in the float32 arithmetic that PyTorch uses for any dtype."""
    places = np.arange(size, dtype=np.float32)
    if exact:
        places += np.float32(0.5)
    return np.minimum(np.floor(places * np.float32(step)).astype(int), length - 1)


def resize_weights(
    length: int, size: int, step: float, cubic: bool, align_corners: bool, antialias: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Which input positions make each output position, and their weights: two arrays of shape (taps, size)."""
    if align_corners:
        distance = (length - 1) / (size - 1) if size > 1 else 0.0
    elif size == length and (antialias or not cubic):  # PyTorch copies such an axis
        distance = 1.0
    else:
        distance = step
    if antialias:
        return antialias_weights(length, size, distance, cubic)
    source = distance * np.arange(size) if align_corners else distance * (np.arange(size) + 0.5) - 0.5
    if cubic:
        first = np.floor(source).astype(int) - 1
        weights = np.stack(cubic_weights(source - np.floor(source)))
        return np.clip(first + np.arange(4)[:, None], 0, length - 1), weights
    source = np.clip(source, 0, length - 1)
    first = np.floor(source).astype(int)
    second, share = np.minimum(first + 1, length - 1), source - first
    return np.stack([first, second]), np.stack([1 - share, share])


def cubic_weights(t: Any, a: float = -0.75) -> list[Any]:
    """Weights of the pixels at -1, 0, 1 and 2 for a point at `t` in [0, 1): cubic convolution (Keys, 1981)."""
    far, near = 1 + t, 1 - t
    return [
        ((a * far - 5 * a) * far + 8 * a) * far - 4 * a,
        ((a + 2) * t - (a + 3)) * t * t + 1,
        ((a + 2) * near - (a + 3)) * near * near + 1,
        ((a * (near + 1) - 5 * a) * (near + 1) + 8 * a) * (near + 1) - 4 * a,
    ]


def antialias_weights(length: int, size: int, step: float, cubic: bool) -> tuple[np.ndarray, np.ndarray]:
    """Positions and weights, (taps, size) each, of a filter stretched by `step` when shrinking (as Pillow does)."""
    stretch = max(step, 1.0)
    support = (2.0 if cubic else 1.0) * stretch
    center = step * (np.arange(size) + 0.5)
    start = np.maximum((center - support + 0.5).astype(int), 0)
    end = np.minimum((center + support + 0.5).astype(int), length)
    positions = start + np.arange((end - start).max())[:, None]
    distance = np.abs(positions - center + 0.5) / stretch
    if cubic:  # with a = -0.5 here, unlike without antialiasing
        inner = (1.5 * distance - 2.5) * distance * distance + 1
        outer = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
        weights = np.where(distance < 1, inner, np.where(distance < 2, outer, 0.0))
    else:
        weights = np.maximum(1 - distance, 0.0)
    weights = np.where(positions < end, weights, 0.0)
    return np.minimum(positions, length - 1), weights / weights.sum(axis=0)


class Upsample(nnx.Module):
    """Resizes the axes after the first two; see `interpolate`."""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        self.size = hashable(size)
        self.scale_factor = hashable(scale_factor)
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def __call__(self, x: jax.Array) -> jax.Array:
        return interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)


class UpsamplingNearest2d(Upsample):
    """Resizes the last two of four axes to the nearest pixel."""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Resizes the last two of four axes bilinearly, corner pixels on corner pixels."""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
