"""Pooling layers with PyTorch's constructors, channels first; the work is done in `pooling`.

Source: https://docs.pytorch.org/docs/stable/nn.html#pooling-layers
"""

from collections.abc import Sequence
from typing import Any

import jax
from flax import nnx

from .pooling import adaptive_avg_pool, adaptive_max_pool, avg_pool, hashable, lp_pool, max_pool, max_unpool


class MaxPoolNd(nnx.Module):
    """Max pooling over the last `rank` axes."""

    rank: int

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        self.kernel_size = hashable(kernel_size)
        self.stride = hashable(stride if stride else kernel_size)
        self.padding = hashable(padding)
        self.dilation = hashable(dilation)
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def __call__(self, x: jax.Array) -> Any:
        options = (self.padding, self.dilation, self.ceil_mode, self.return_indices)
        return max_pool(self.rank, x, self.kernel_size, self.stride, *options)


class MaxPool1d(MaxPoolNd):
    rank = 1


class MaxPool2d(MaxPoolNd):
    rank = 2


class MaxPool3d(MaxPoolNd):
    rank = 3


class MaxUnpoolNd(nnx.Module):
    """Puts the values of a max pooling over the last `rank` axes back where they came from."""

    rank: int

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        self.kernel_size = hashable(kernel_size)
        self.stride = hashable(stride if stride else kernel_size)
        self.padding = hashable(padding)

    def __call__(self, x: jax.Array, indices: jax.Array, output_size: Sequence[int] | None = None) -> jax.Array:
        return max_unpool(self.rank, x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(MaxUnpoolNd):
    rank = 1


class MaxUnpool2d(MaxUnpoolNd):
    rank = 2


class MaxUnpool3d(MaxUnpoolNd):
    rank = 3


class AvgPoolNd(nnx.Module):
    """Average pooling over the last `rank` axes."""

    rank: int

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        self.kernel_size = hashable(kernel_size)
        self.stride = hashable(stride if stride else kernel_size)
        self.padding = hashable(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def __call__(self, x: jax.Array) -> jax.Array:
        options = (self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)
        return avg_pool(self.rank, x, self.kernel_size, self.stride, *options)


class AvgPool1d(AvgPoolNd):
    rank = 1


class AvgPool2d(AvgPoolNd):
    rank = 2


class AvgPool3d(AvgPoolNd):
    rank = 3


class AdaptiveAvgPoolNd(nnx.Module):
    """Average pooling of the last `rank` axes to a given size."""

    rank: int

    def __init__(self, output_size: int | None | Sequence[int | None], *, rngs: nnx.Rngs | None = None):
        self.output_size = hashable(output_size)

    def __call__(self, x: jax.Array) -> jax.Array:
        return adaptive_avg_pool(self.rank, x, self.output_size)


class AdaptiveAvgPool1d(AdaptiveAvgPoolNd):
    rank = 1


class AdaptiveAvgPool2d(AdaptiveAvgPoolNd):
    rank = 2


class AdaptiveAvgPool3d(AdaptiveAvgPoolNd):
    rank = 3


class AdaptiveMaxPoolNd(nnx.Module):
    """Max pooling of the last `rank` axes to a given size."""

    rank: int

    def __init__(
        self,
        output_size: int | None | Sequence[int | None],
        return_indices: bool = False,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        self.output_size = hashable(output_size)
        self.return_indices = return_indices

    def __call__(self, x: jax.Array) -> Any:
        return adaptive_max_pool(self.rank, x, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(AdaptiveMaxPoolNd):
    rank = 1


class AdaptiveMaxPool2d(AdaptiveMaxPoolNd):
    rank = 2


class AdaptiveMaxPool3d(AdaptiveMaxPoolNd):
    rank = 3


class LPPoolNd(nnx.Module):
    """Power-average pooling over the last `rank` axes."""

    rank: int

    def __init__(
        self,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        self.norm_type = norm_type
        self.kernel_size = hashable(kernel_size)
        self.stride = hashable(stride)
        self.ceil_mode = ceil_mode

    def __call__(self, x: jax.Array) -> jax.Array:
        return lp_pool(self.rank, x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(LPPoolNd):
    rank = 1


class LPPool2d(LPPoolNd):
    rank = 2


class LPPool3d(LPPoolNd):
    rank = 3
