"""Max pooling over windows whose places are drawn (https://arxiv.org/abs/1412.6071), channels first, as PyTorch's."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx


def window_starts(sample: jax.Array, size: int, count: int, kernel: int) -> jax.Array:
    """Where `count` windows of `kernel` start on an axis of `size`, for one number drawn from [0, 1)."""
    alpha = (size - kernel) / max(count - 1, 1)
    starts = jnp.trunc((jnp.arange(count) + sample) * alpha) - jnp.trunc(sample * alpha)
    return starts.astype(int).at[-1].set(size - kernel)


def fractional_max_pool(
    rank: int,
    x: jax.Array,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    samples: jax.Array | None = None,
    *,
    rngs: nnx.Rngs | None,
) -> Any:
    """Largest values in overlapping windows over the last `rank` axes of x, (N, C, *spatial) or (C, *spatial).

    Args:
      output_size: sizes of the result, or `output_ratio`, their share of x's sizes.
      samples: (N, C, rank), numbers in [0, 1) that say where windows lie: of images first for the width.
    Returns:
      The values, and with `return_indices` also where they are in the flat image of each channel.
    """
    sizes = x.shape[-rank:]
    kernel = (kernel_size,) * rank if isinstance(kernel_size, int) else tuple(kernel_size)
    if output_size is None:
        ratio = (output_ratio,) * rank if isinstance(output_ratio, float) else output_ratio
        output_size = [int(n * r) for n, r in zip(sizes, ratio, strict=True)]
    counts = (output_size,) * rank if isinstance(output_size, int) else tuple(output_size)
    planes = x.reshape(-1, math.prod(sizes))
    if samples is None:
        samples = jax.random.uniform(rngs(), (planes.shape[0], rank), x.dtype)
    samples = samples.reshape(-1, rank)[: len(planes)]
    samples = samples[:, ::-1] if rank == 2 else samples

    def positions(sample: jax.Array) -> jax.Array:
        flat = jnp.zeros((1,) * (2 * rank), int)
        for i in range(rank):
            places = window_starts(sample[i], sizes[i], counts[i], kernel[i])[:, None] + jnp.arange(kernel[i])
            others = [a for a in range(2 * rank) if a not in (i, rank + i)]
            flat = flat * sizes[i] + jnp.expand_dims(places, others)
        return flat.reshape(*counts, -1)

    def pool(plane: jax.Array, sample: jax.Array) -> tuple[jax.Array, jax.Array]:
        where = positions(sample)
        best = jnp.argmax(plane[where], axis=-1, keepdims=True)
        where = jnp.take_along_axis(where, best, axis=-1)[..., 0]
        return plane[where], where

    values, indices = (y.reshape(*x.shape[:-rank], *counts) for y in jax.vmap(pool)(planes, samples))
    return (values, indices) if return_indices else values


class FractionalMaxPool(nnx.Module):
    """Fractional max pooling over the last `rank` axes."""

    rank: int

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int] | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: jax.Array | None = None,
        *,
        rngs: nnx.Rngs,
    ):
        self.kernel_size, self.output_size, self.output_ratio = kernel_size, output_size, output_ratio
        self.return_indices = return_indices
        self._random_samples = nnx.BatchStat(_random_samples) if _random_samples is not None else nnx.data(None)
        self.rngs = rngs.fork()

    def __call__(self, x: jax.Array) -> Any:
        """Pools x, (N, C, *spatial) or (C, *spatial)."""
        sizes = (self.kernel_size, self.output_size, self.output_ratio, self.return_indices)
        samples = None if self._random_samples is None else self._random_samples[...]
        return fractional_max_pool(self.rank, x, *sizes, samples, rngs=self.rngs)


class FractionalMaxPool2d(FractionalMaxPool):
    """PyTorch's `nn.FractionalMaxPool2d`: (N, C, H, W) or (C, H, W)."""

    rank = 2


class FractionalMaxPool3d(FractionalMaxPool):
    """PyTorch's `nn.FractionalMaxPool3d`: (N, C, D, H, W) or (C, D, H, W)."""

    rank = 3
