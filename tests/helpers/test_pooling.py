"""Pooling against PyTorch: ties, negative inputs, padding, overhanging windows and windows of unequal width."""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flax import nnx

from t2j_lsp.rules.helpers import pooling, pooling_modules
from tests.helpers.compare import array, same_function, same_module

same = partial(same_function, jit=True)  # one compilation for each case, not one for each operation

WINDOWS = [
    dict(kernel_size=2),
    dict(kernel_size=3, stride=2, padding=1),
    dict(kernel_size=3, stride=2, padding=1, ceil_mode=True),
    dict(kernel_size=(2, 3), stride=(3, 2), padding=(1, 0), ceil_mode=True),
    dict(kernel_size=2, stride=3, padding=1, ceil_mode=True),
]


def tied(*shape: int) -> np.ndarray:
    """Whole numbers from -3 to 0: many ties, and nothing above the zeros of a wrong padding."""
    return np.floor(array(*shape, low=-3.0, high=1.0))


@pytest.mark.parametrize("options", WINDOWS, ids=str)
def test_max_pool2d_pads_with_minus_infinity_and_gives_ties_to_the_first(options: dict[str, Any]) -> None:
    x = tied(2, 3, 7, 8)
    same(partial(pooling.max_pool2d, **options), partial(F.max_pool2d, **options), x)


@pytest.mark.parametrize("options", [*WINDOWS[1:4], dict(kernel_size=3, stride=2, padding=1, dilation=2)], ids=str)
def test_max_pool2d_returns_the_places_of_the_maxima(options: dict[str, Any]) -> None:
    options = options | dict(return_indices=True)
    same(partial(pooling.max_pool2d, **options), partial(F.max_pool2d, **options), tied(2, 3, 7, 8))


def test_max_pool2d_dilated() -> None:
    options = dict(kernel_size=(2, 3), stride=2, padding=1, dilation=(1, 2), ceil_mode=True)
    same(partial(pooling.max_pool2d, **options), partial(F.max_pool2d, **options), tied(2, 3, 7, 8))


def test_max_pool_takes_unbatched_one_and_three_dimensional_inputs() -> None:
    same_function(partial(pooling.max_pool1d, kernel_size=3), partial(F.max_pool1d, kernel_size=3), tied(4, 10))
    options = dict(kernel_size=(2, 3, 2), stride=(2, 1, 2), padding=(0, 1, 1))
    same(partial(pooling.max_pool3d, **options), partial(F.max_pool3d, **options), tied(2, 2, 4, 5, 6))


def test_max_pool_of_integers() -> None:
    x = tied(1, 2, 5, 5).astype(np.int64)
    same(lambda x: pooling.max_pool2d(x, 2, padding=1), lambda x: F.max_pool2d(x, 2, padding=1), x)


@pytest.mark.parametrize("output_size", [None, (1, 2, 7, 9)])
def test_max_unpool2d_puts_values_back(output_size: tuple[int, ...] | None) -> None:
    def unpool(x: Any, library: Any) -> Any:
        values, indices = library.max_pool2d(x, 2, return_indices=True)
        return library.max_unpool2d(values * values, indices, 2, output_size=output_size)

    x = array(1, 2, 6, 8) if output_size is None else array(1, 2, 7, 9)
    same(partial(unpool, library=pooling), partial(unpool, library=F), x)


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("options", WINDOWS, ids=str)
def test_avg_pool2d_counts_as_pytorch(options: dict[str, Any], counted: bool) -> None:
    options = options | dict(count_include_pad=counted)
    same(partial(pooling.avg_pool2d, **options), partial(F.avg_pool2d, **options), array(2, 3, 7, 8))


def test_avg_pool_divisor_override_and_other_ranks() -> None:
    options: dict[str, Any] = dict(kernel_size=3, stride=2, padding=1, divisor_override=5)
    same(partial(pooling.avg_pool2d, **options), partial(F.avg_pool2d, **options), array(3, 7, 8))
    same(partial(pooling.avg_pool3d, **options), partial(F.avg_pool3d, **options), array(1, 2, 3, 5, 4))
    same(lambda x: pooling.avg_pool1d(x, 2, 1, 1), lambda x: F.avg_pool1d(x, 2, 1, 1), array(2, 3, 6))


@pytest.mark.parametrize("output_size", [1, 3, (4, None), (10, 2)])
def test_adaptive_pools_of_sizes_that_do_not_divide(output_size: Any) -> None:
    x = tied(2, 3, 7, 8)
    same(lambda x: pooling.adaptive_avg_pool2d(x, output_size), lambda x: F.adaptive_avg_pool2d(x, output_size), x)
    same(
        lambda x: pooling.adaptive_max_pool2d(x, output_size, True),
        lambda x: F.adaptive_max_pool2d(x, output_size, True),
        x,
    )


def test_adaptive_pools_of_other_ranks() -> None:
    line, volume = array(3, 10), array(1, 2, 3, 5, 4)
    same(lambda x: pooling.adaptive_avg_pool1d(x, 4), lambda x: F.adaptive_avg_pool1d(x, 4), line)
    same(lambda x: pooling.adaptive_max_pool1d(x, 4), lambda x: F.adaptive_max_pool1d(x, 4), line)
    size = (2, None, 3)
    same(lambda x: pooling.adaptive_avg_pool3d(x, size), lambda x: F.adaptive_avg_pool3d(x, size), volume)
    same(lambda x: pooling.adaptive_max_pool3d(x, size), lambda x: F.adaptive_max_pool3d(x, size), volume)


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
def test_lp_pool2d_has_gradient_zero_where_a_window_is_zero(power: float) -> None:
    x = array(2, 3, 7, 8)
    x[0, 1] = 0.0
    same(lambda x: pooling.lp_pool2d(x, power, (2, 3), 2, True), lambda x: F.lp_pool2d(x, power, (2, 3), 2, True), x)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32])
def test_pooling_keeps_the_dtype(dtype: Any) -> None:
    x = jnp.ones((1, 2, 5, 5), dtype)
    for pooled in (
        pooling.max_pool2d(x, 3, dilation=2),
        pooling.max_pool2d(x, 2),
        pooling.avg_pool2d(x, 2, padding=1, ceil_mode=True),
        pooling.adaptive_avg_pool2d(x, 2),
        pooling.adaptive_max_pool2d(x, 2),
        pooling.lp_pool2d(x, 2, 2),
    ):
        assert pooled.dtype == dtype


@pytest.mark.parametrize(("size", "kernel"), [((1, 2), 2), ((1, 3), 3), ((3, 1), 2), ((1, 1), 2)])
def test_avg_pool2d_counts_an_axis_of_length_one_once(size: tuple[int, int], kernel: int) -> None:
    """XLA's CPU compiler counts it twice where a window hangs over its end; with few channels it does not."""
    x = array(3, 1280, *size)
    options = dict(kernel_size=kernel, ceil_mode=True)
    same(partial(pooling.avg_pool2d, **options), partial(F.avg_pool2d, **options), x)


MODULES: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
    ("MaxPool1d", (3, 2), dict(padding=1), (2, 3, 7)),
    ("MaxPool2d", ([3, 2], None, 1, 1, False, True), {}, (2, 3, 7, 8)),
    ("MaxPool3d", (2,), dict(return_indices=True), (2, 4, 5, 6)),
    ("AvgPool1d", (3, 2, 1, True, False), {}, (2, 3, 7)),
    ("AvgPool2d", (3,), dict(stride=2, padding=1), (2, 3, 7, 8)),
    ("AvgPool3d", (2, None, 0, False, True, 3), {}, (2, 4, 5, 6)),
    ("AdaptiveAvgPool1d", (4,), {}, (2, 3, 7)),
    ("AdaptiveAvgPool2d", ((3, None),), {}, (2, 3, 7, 8)),
    ("AdaptiveAvgPool3d", (1,), {}, (2, 4, 5, 6)),
    ("AdaptiveMaxPool1d", (4, True), {}, (2, 3, 7)),
    ("AdaptiveMaxPool2d", ((3, None),), {}, (2, 3, 7, 8)),
    ("AdaptiveMaxPool3d", (2,), {}, (2, 4, 5, 6)),
    ("LPPool1d", (2, 3), {}, (2, 3, 7)),
    ("LPPool2d", (2, (2, 3), 1, True), {}, (2, 3, 7, 8)),
    ("LPPool3d", (2, 2), {}, (2, 4, 5, 6)),
]


@pytest.mark.parametrize(("name", "args", "kwargs", "shape"), MODULES, ids=[m[0] for m in MODULES])
def test_layer_takes_pytorchs_arguments(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], shape: tuple[int, ...]
) -> None:
    layer = getattr(pooling_modules, name)(*args, **kwargs, rngs=nnx.Rngs(0))
    same_module(layer, getattr(torch.nn, name)(*args, **kwargs), array(*shape), jit=name.endswith("2d"))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_max_unpool_layer(rank: int) -> None:
    pooled, indices = getattr(F, f"max_pool{rank}d")(
        torch.from_numpy(array(1, 2, 4, 6, 4)[(slice(None),) * 2 + (0,) * (3 - rank)]), 2, return_indices=True
    )
    layer = getattr(pooling_modules, f"MaxUnpool{rank}d")(2)
    same_module(layer, getattr(torch.nn, f"MaxUnpool{rank}d")(2), pooled.numpy(), indices.numpy())


def test_lists_are_kept_as_tuples_so_that_jit_can_hash_the_module() -> None:
    layers = (
        pooling_modules.MaxPool2d([2, 2], [1, 2], [0, 1], [1, 1]),
        pooling_modules.MaxUnpool2d([2, 2], [1, 2], [0, 1]),
        pooling_modules.AvgPool2d([2, 2], [1, 2], [0, 1]),
        pooling_modules.LPPool2d(2, [2, 2], [1, 2]),
        pooling_modules.AdaptiveAvgPool2d([1, 2]),
        pooling_modules.AdaptiveMaxPool2d([1, 2]),
    )
    for layer in layers:
        assert isinstance(hash(nnx.graphdef(layer)), int)
