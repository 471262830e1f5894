"""Normalization layers with PyTorch's constructors, channel axis, epsilon and running statistics.

The functions of `torch.nn.functional` are in `norm_functions.py`. Variances are taken in two passes, as PyTorch does:
Flax's default, E[x^2] - E[x]^2, cancels where the mean is far above the spread.
Source: https://docs.pytorch.org/docs/stable/nn.html#normalization-layers
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from .norm_functions import batch_norm, instance_norm, local_response_norm, rms_norm


class BatchNorm(nnx.BatchNorm):
    """`nnx.BatchNorm` whose running variance is unbiased, as in PyTorch.

    Both normalize by the variance of the batch with divisor n. Into `var`, PyTorch averages the one with divisor n - 1,
    Flax the one with divisor n.
    """

    def __init__(self, num_features: int, *, momentum: float = 0.9, **options: Any):
        super().__init__(num_features, momentum=momentum, use_fast_variance=False, **options)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Normalizes `x` and, in training, updates `mean` and `var`. One value for each channel is an error."""
        n, old = x.size // self.num_features, self.momentum * self.var[...]
        y = super().__call__(x, use_running_average=self.use_running_average or n == 0)
        if n > 0 and not self.use_running_average:
            # What was added to `old` is the biased variance; 1 / (n - 1) of it makes it the unbiased one.
            self.var[...] += (self.var[...] - old) * (1 / (n - 1))
        return y


class ChannelsFirstBatchNorm(BatchNorm):
    """PyTorch's batch normalization of (N, C, *spatial): `scale`, `bias`, `mean` and `var` have shape (C,).

    `momentum` is the weight of the new statistics, as in PyTorch; None averages all batches alike.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        bias: bool = True,
        rngs: nnx.Rngs,
    ):
        super().__init__(
            num_features,
            axis=1,
            momentum=0.0 if momentum is None else 1 - momentum,
            epsilon=eps,
            use_bias=affine and bias,
            use_scale=affine,
            rngs=rngs,
        )
        self.eps, self.affine, self.track_running_stats = eps, affine, track_running_stats
        if not track_running_stats:
            self.mean = self.var = nnx.data(None)
        elif momentum is None:
            self.num_batches_tracked = nnx.BatchStat(jnp.zeros((), int))
        self.cumulative = track_running_stats and momentum is None

    weight = property(lambda self: self.scale)
    running_mean = property(lambda self: self.mean)
    running_var = property(lambda self: self.var)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Normalizes `x`, (N, C, *spatial), and updates the running statistics in training."""
        if not self.track_running_stats:
            return batch_norm(x, None, None, self.scale, self.bias, training=True, eps=self.eps)
        if not self.cumulative or self.use_running_average:
            return super().__call__(x)
        mean, var = self.mean[...], self.var[...]
        y = super().__call__(x)  # with momentum 0: leaves the statistics of this batch
        self.num_batches_tracked[...] += 1
        self.mean[...] = mean + (self.mean[...] - mean) / self.num_batches_tracked[...]
        self.var[...] = var + (self.var[...] - var) / self.num_batches_tracked[...]
        return y


class BatchNorm1d(ChannelsFirstBatchNorm):
    """PyTorch's `nn.BatchNorm1d`: (N, C) or (N, C, L)."""


class BatchNorm2d(ChannelsFirstBatchNorm):
    """PyTorch's `nn.BatchNorm2d`: (N, C, H, W)."""


class BatchNorm3d(ChannelsFirstBatchNorm):
    """PyTorch's `nn.BatchNorm3d`: (N, C, D, H, W)."""


class LayerNorm(nnx.LayerNorm):
    """PyTorch's `nn.LayerNorm` over the last axes; `scale` and `bias` have shape `normalized_shape`."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        rngs: nnx.Rngs,
    ):
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        axes = dict.fromkeys(("reduction_axes", "feature_axes"), tuple(range(-len(shape), 0)))
        super().__init__(
            math.prod(shape),
            epsilon=eps,
            use_scale=elementwise_affine,
            use_bias=elementwise_affine and bias,
            use_fast_variance=False,
            **axes,
            rngs=rngs,
        )
        if elementwise_affine:
            self.scale = nnx.Param(jnp.ones(shape, self.param_dtype))
        if elementwise_affine and bias:
            self.bias = nnx.Param(jnp.zeros(shape, self.param_dtype))
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine

    weight = property(lambda self: self.scale)


class GroupNorm(nnx.GroupNorm):
    """PyTorch's `nn.GroupNorm`: (N, C, *)."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        bias: bool = True,
        rngs: nnx.Rngs,
    ):
        super().__init__(
            num_channels,
            num_groups,
            epsilon=eps,
            use_scale=affine,
            use_bias=affine and bias,
            use_fast_variance=False,
            rngs=rngs,
        )
        self.num_channels, self.eps, self.affine = num_channels, eps, affine

    weight = property(lambda self: self.scale)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Normalizes `x`, (N, C, *), over the channels of a group and all axes after them."""
        return jnp.moveaxis(super().__call__(jnp.moveaxis(x, 1, -1)), -1, 1)


class ChannelsFirstInstanceNorm(nnx.InstanceNorm):
    """PyTorch's instance normalization of (N, C, *spatial) or (C, *spatial).

    With `track_running_stats`, training keeps running means over examples of each channel's `mean` and unbiased `var`,
    which take the place of the example's own statistics in evaluation.
    """

    rank: int  # of the spatial axes, set by the subclasses

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        *,
        bias: bool = True,
        rngs: nnx.Rngs,
    ):
        super().__init__(num_features, epsilon=eps, use_scale=affine, use_bias=affine and bias, rngs=rngs)
        self.eps, self.momentum, self.affine = eps, momentum or 0.0, affine
        self.track_running_stats, self.use_running_average = track_running_stats, False
        self.mean = nnx.BatchStat(jnp.zeros(num_features)) if track_running_stats else nnx.data(None)
        self.var = nnx.BatchStat(jnp.ones(num_features)) if track_running_stats else nnx.data(None)

    weight = property(lambda self: self.scale)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Normalizes every channel of every example over its spatial axes, or by the running statistics."""
        batch = x if x.ndim == self.rank + 2 else x[None]
        if self.track_running_stats and self.use_running_average:
            return batch_norm(batch, self.mean, self.var, self.scale, self.bias, eps=self.eps).reshape(x.shape)
        if self.track_running_stats:
            spatial = tuple(range(2, batch.ndim))
            self.mean[...] += self.momentum * (batch.mean((0, *spatial)) - self.mean[...])
            self.var[...] += self.momentum * (batch.var(spatial, ddof=1).mean(0) - self.var[...])
        return instance_norm(batch, weight=self.scale, bias=self.bias, eps=self.eps).reshape(x.shape)


class InstanceNorm1d(ChannelsFirstInstanceNorm):
    """PyTorch's `nn.InstanceNorm1d`: (N, C, L) or (C, L)."""

    rank = 1


class InstanceNorm2d(ChannelsFirstInstanceNorm):
    """PyTorch's `nn.InstanceNorm2d`: (N, C, H, W) or (C, H, W)."""

    rank = 2


class InstanceNorm3d(ChannelsFirstInstanceNorm):
    """PyTorch's `nn.InstanceNorm3d`: (N, C, D, H, W) or (C, D, H, W)."""

    rank = 3


class RMSNorm(nnx.RMSNorm):
    """PyTorch's `nn.RMSNorm` over the last axes; `eps=None` is the machine epsilon of the input's dtype."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        rngs: nnx.Rngs,
    ):
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        super().__init__(
            math.prod(shape),
            use_scale=elementwise_affine,
            scale_init=lambda key, _, dtype: jnp.ones(shape, dtype),
            rngs=rngs,
        )
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine

    weight = property(lambda self: self.scale)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Divides `x` by its root mean square over the normalized axes."""
        return rms_norm(x, self.normalized_shape, self.scale, self.eps)


class LocalResponseNorm(nnx.Module):
    """PyTorch's `nn.LocalResponseNorm`: (N, C, *spatial)."""

    def __init__(
        self,
        size: int,
        alpha: float = 1e-4,
        beta: float = 0.75,
        k: float = 1.0,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def __call__(self, x: jax.Array) -> jax.Array:
        """Divides every value by a power of the mean square of its neighbouring channels."""
        return local_response_norm(x, self.size, self.alpha, self.beta, self.k)
