"""``grid_sample`` and ``affine_grid`` against PyTorch: every mode, padding and corner convention, far outside too."""

import itertools
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
import torch.nn.functional as F

from t2j_lsp.rules.helpers import grid
from tests.helpers.compare import array, same_function

same = partial(same_function, jit=True)

PADDINGS = ("zeros", "border", "reflection")


@pytest.mark.parametrize(
    ("mode", "padding_mode", "align_corners"),
    list(itertools.product(("bilinear", "nearest", "bicubic"), PADDINGS, (False, True))),
)
def test_grid_sample_of_images(mode: str, padding_mode: str, align_corners: bool) -> None:
    options = dict(mode=mode, padding_mode=padding_mode, align_corners=align_corners)
    points = array(2, 3, 6, 2, low=-3.3, high=3.3)
    points[1] /= 3.3
    same(partial(grid.grid_sample, **options), partial(F.grid_sample, **options), array(2, 3, 4, 7), points)


@pytest.mark.parametrize("padding_mode", PADDINGS)
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample_of_volumes(mode: str, padding_mode: str) -> None:
    options = dict(mode=mode, padding_mode=padding_mode, align_corners=False)
    points = array(1, 2, 3, 4, 3, low=-2.0, high=2.0)
    same(partial(grid.grid_sample, **options), partial(F.grid_sample, **options), array(1, 2, 4, 3, 5), points)


@pytest.mark.parametrize("padding_mode", PADDINGS)
@pytest.mark.parametrize("align_corners", [False, True])
def test_grid_sample_at_pixel_centres_corners_and_borders(padding_mode: str, align_corners: bool) -> None:
    options = dict(padding_mode=padding_mode, align_corners=align_corners)
    ticks = np.array([-3.0, -1.0, -0.75, -0.5, 0.0, 0.25, 0.5, 1.0, 3.0])
    points = np.stack(np.meshgrid(ticks, ticks), axis=-1)[None]
    same(partial(grid.grid_sample, **options), partial(F.grid_sample, **options), array(1, 2, 4, 4), points)


def test_grid_sample_of_a_single_pixel_reflects() -> None:
    options = dict(padding_mode="reflection", align_corners=True)
    inputs = (array(1, 2, 1, 3), array(1, 3, 2, 2))
    same_function(partial(grid.grid_sample, **options), partial(F.grid_sample, **options), *inputs)


@pytest.mark.parametrize("align_corners", [False, True])
def test_affine_grid(align_corners: bool) -> None:
    for theta, size in ((array(2, 2, 3), (2, 3, 4, 5)), (array(2, 3, 4), (2, 3, 4, 2, 5))):
        same(
            lambda t, size=size: grid.affine_grid(t, size, align_corners=align_corners),
            lambda t, size=size: F.affine_grid(t, size, align_corners=align_corners),
            theta,
        )


def test_sampling_keeps_float32() -> None:
    points = grid.affine_grid(jnp.ones((1, 2, 3), jnp.float32), (1, 1, 2, 2))
    assert points.dtype == jnp.float32
    assert grid.grid_sample(jnp.ones((1, 1, 3, 3), jnp.float32), points).dtype == jnp.float32
