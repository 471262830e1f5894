"""Batches of images as one picture, against torchvision's own loop over them, written with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp.rules.helpers.images import make_grid

RANDOM = np.random.default_rng(0)


def placed(images: np.ndarray, nrow: int, padding: int, pad_value: float) -> np.ndarray:
    """The images in rows, each put where it stands."""
    count, channels, height, width = images.shape
    columns = min(nrow, count)
    rows = int(np.ceil(count / columns))
    grid = np.full(
        (channels, (height + padding) * rows + padding, (width + padding) * columns + padding), pad_value, np.float32
    )
    for at, image in enumerate(images):
        top, left = (at // columns) * (height + padding) + padding, (at % columns) * (width + padding) + padding
        grid[:, top : top + height, left : left + width] = image
    return grid


@pytest.mark.parametrize(("count", "nrow", "padding", "pad_value"), [(7, 3, 2, 0.5), (4, 8, 0, 0.0), (6, 2, 1, -1.0)])
def test_images_stand_in_rows_with_their_padding(count: int, nrow: int, padding: int, pad_value: float) -> None:
    images = RANDOM.normal(size=(count, 3, 5, 4)).astype(np.float32)
    made = make_grid(images, nrow=nrow, padding=padding, pad_value=pad_value)
    np.testing.assert_array_equal(made, placed(images, nrow, padding, pad_value))
    np.testing.assert_array_equal(make_grid(list(images), nrow, padding, pad_value=pad_value), made)


@pytest.mark.parametrize("shape", [(5, 4), (1, 5, 4), (1, 1, 5, 4)])
def test_one_grey_image_has_three_channels_and_no_padding(shape: tuple[int, ...]) -> None:
    image = RANDOM.normal(size=shape).astype(np.float32)
    np.testing.assert_array_equal(make_grid(image), np.broadcast_to(image.reshape(1, 5, 4), (3, 5, 4)))


def test_values_are_taken_to_0_and_1_by_what_they_span() -> None:
    images = (
        RANDOM.normal(size=(4, 3, 2, 2)).astype(np.float32) * np.arange(1, 5, dtype=np.float32)[:, None, None, None]
    )
    spans = images.min((1, 2, 3), keepdims=True), images.max((1, 2, 3), keepdims=True)
    each = (images - spans[0]) / (spans[1] - spans[0])
    whole = (images - images.min()) / (images.max() - images.min())
    given = (np.clip(images, -1, 1) + 1) / 2
    for options, expected in (({"scale_each": True}, each), ({}, whole), ({"value_range": (-1, 1)}, given)):
        made = make_grid(images, normalize=True, padding=1, nrow=2, **options)
        np.testing.assert_allclose(made, placed(expected, 2, 1, 0.0), rtol=1e-5, atol=1e-6)
