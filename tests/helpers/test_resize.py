"""``interpolate`` and the upsampling layers against PyTorch, at ratios that divide nothing."""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flax import nnx

from t2j_lsp.rules.helpers import resize
from tests.helpers.compare import array, same_function, same_module

same = partial(same_function, jit=True)


def compare(x: np.ndarray, **options: Any) -> None:
    same(partial(resize.interpolate, **options), partial(F.interpolate, **options), x)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "area", "bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 11), (10, 4)])
def test_interpolate_to_a_size(mode: str, size: tuple[int, int]) -> None:
    compare(array(2, 3, 5, 7), size=size, mode=mode)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 11), (10, 1)])
def test_interpolate_with_corners_on_corners(mode: str, size: tuple[int, int]) -> None:
    compare(array(2, 3, 5, 7), size=size, mode=mode, align_corners=True)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_interpolate_antialiased(mode: str, align_corners: bool) -> None:
    compare(array(2, 3, 5, 13), size=(11, 4), mode=mode, align_corners=align_corners, antialias=True)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize("recompute", [None, True])
def test_a_scale_factor_sets_the_sampling_distance_unless_recomputed(mode: str, recompute: bool | None) -> None:
    compare(array(1, 2, 5, 7), scale_factor=(2.3, 0.6), mode=mode, recompute_scale_factor=recompute)


def test_an_axis_that_keeps_its_length_is_copied_by_linear_but_not_by_cubic_modes() -> None:
    for mode in ("bilinear", "bicubic"):
        options: dict[str, Any] = dict(scale_factor=1.1, mode=mode)
        # PyTorch copies in one of forward and backward and resamples in the other, so gradients are not compared.
        function, reference = partial(resize.interpolate, **options), partial(F.interpolate, **options)
        same(function, reference, array(1, 2, 9, 3), gradients=False)


def test_interpolate_lines_and_volumes() -> None:
    compare(array(2, 3, 7), scale_factor=2, mode="linear")
    compare(array(2, 3, 7), size=4)
    compare(array(1, 2, 3, 4, 5), size=(5, 3, 6), mode="trilinear", align_corners=True)
    compare(array(1, 2, 3, 4, 5), scale_factor=(1.5, 2, 0.5))


def test_nearest_positions_round_as_pytorch_rounds() -> None:
    for length in range(1, 40):
        x = torch.arange(length, dtype=torch.float32)[None, None, :, None]
        for size in range(1, 40):
            for mode in ("nearest", "nearest-exact"):
                want = F.interpolate(x, size=(size, 1), mode=mode)[0, 0, :, 0].numpy()
                given = resize.nearest_positions(length, size, length / size, mode == "nearest-exact")
                np.testing.assert_array_equal(given, want)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32])
def test_interpolate_keeps_the_dtype(dtype: Any) -> None:
    for mode in ("nearest", "bilinear", "area"):
        assert resize.interpolate(jnp.ones((1, 1, 3, 3), dtype), 5, mode=mode).dtype == dtype


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("Upsample", (None, 2, "bilinear", True)),
        ("Upsample", ((4, 9),)),
        ("Upsample", (None, (1.5, 0.7), "bicubic", False, True)),
        ("UpsamplingNearest2d", (None, 3)),
        ("UpsamplingBilinear2d", (8,)),
    ],
)
def test_layer_takes_pytorchs_arguments(name: str, args: tuple[Any, ...]) -> None:
    layer = getattr(resize, name)(*args, rngs=nnx.Rngs(0))
    same_module(layer, getattr(torch.nn, name)(*args), array(2, 3, 5, 7), jit=True)


def test_lists_are_kept_as_tuples_so_that_jit_can_hash_the_module() -> None:
    for layer in (resize.Upsample([4, 4]), resize.UpsamplingNearest2d(scale_factor=[2, 2])):
        assert isinstance(hash(nnx.graphdef(layer)), int)
