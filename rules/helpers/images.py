"""Batches of images as one picture, and in a file, as torchvision makes them.

Source: https://docs.pytorch.org/vision/stable/generated/torchvision.utils.make_grid.html
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def make_grid(
    images: Any,
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> jax.Array:
    """One image (C, H, W) of a batch (N, C, H, W), a list of images or one: `nrow` in a row, `padding` pixels apart.

    `normalize` takes `value_range`, or what the images span, each for itself with `scale_each`, to [0, 1].
    """
    images = jnp.stack(images) if isinstance(images, list | tuple) else jnp.asarray(images)
    images = images.reshape((1,) * (4 - images.ndim) + images.shape)
    images = jnp.repeat(images, 3, axis=1) if images.shape[1] == 1 else images
    if normalize:
        axes = (1, 2, 3) if scale_each else None
        spanned = images.min(axes, keepdims=True), images.max(axes, keepdims=True)
        low, high = spanned if value_range is None else value_range
        images = (jnp.clip(images, low, high) - low) / jnp.maximum(high - low, 1e-5)
    count, channels, height, width = images.shape
    if count == 1:
        return images[0]
    columns = min(nrow, count)
    rows = -(-count // columns)
    around = ((0, rows * columns - count), (0, 0), (padding, 0), (padding, 0))
    cells = jnp.pad(images, around, constant_values=pad_value)
    cells = cells.reshape(rows, columns, channels, height + padding, width + padding)
    grid = cells.transpose(2, 0, 3, 1, 4).reshape(channels, rows * cells.shape[3], columns * cells.shape[4])
    return jnp.pad(grid, ((0, 0), (0, padding), (0, padding)), constant_values=pad_value)


def save_image(images: Any, file: Any, format: str | None = None, **options: Any) -> None:
    """Saves an image (C, H, W), or the grid of a batch, whose values are from 0 to 1; `options` are `make_grid`'s."""
    from PIL import Image

    grid = jnp.clip(make_grid(images, **options) * 255 + 0.5, 0, 255)
    Image.fromarray(np.asarray(grid, np.uint8).transpose(1, 2, 0)).save(file, format=format)
