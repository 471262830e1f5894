"""Dropout with PyTorch's constructors: of elements, of whole channels, and alpha dropout; and the functions.

`nnx.Dropout` is exact for elements, for p = 1 too (zeros, with gradient 0). The masks come from the `dropout` stream of
an `nnx.Rngs`; they are other numbers than PyTorch's.
Source: https://docs.pytorch.org/docs/stable/nn.html#dropout-layers
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import nnx


def dropout(
    x: jax.Array,
    rate: float = 0.5,
    *,
    deterministic: bool,
    rngs: nnx.Rngs | nnx.RngStream | None,
    broadcast_dims: Sequence[int] = (),
) -> jax.Array:
    """`F.dropout` with `training=not deterministic`; axes in `broadcast_dims` share one mask.

    Args:
      x: any shape.
      rate: the probability of a zero; what is kept is divided by 1 - rate.
      deterministic: returns x.
      rngs: gives the key of the mask.
      broadcast_dims: as for `nnx.Dropout`.
    """
    layer = nnx.Dropout(rate, broadcast_dims=tuple(broadcast_dims), deterministic=deterministic)
    return layer(x, rngs=rngs)


def dropout1d(
    x: jax.Array, rate: float = 0.5, *, deterministic: bool, rngs: nnx.Rngs | nnx.RngStream | None
) -> jax.Array:
    """`F.dropout1d`: drops whole channels of (N, C, L) or (C, L)."""
    return dropout(x, rate, deterministic=deterministic, rngs=rngs, broadcast_dims=(-1,))


def dropout2d(
    x: jax.Array, rate: float = 0.5, *, deterministic: bool, rngs: nnx.Rngs | nnx.RngStream | None
) -> jax.Array:
    """`F.dropout2d`: drops whole channels of (N, C, H, W); three axes are (N, C, L), as in PyTorch."""
    return dropout(x, rate, deterministic=deterministic, rngs=rngs, broadcast_dims=range(2, x.ndim))


def dropout3d(
    x: jax.Array, rate: float = 0.5, *, deterministic: bool, rngs: nnx.Rngs | nnx.RngStream | None
) -> jax.Array:
    """`F.dropout3d`: drops whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    return dropout(x, rate, deterministic=deterministic, rngs=rngs, broadcast_dims=(-3, -2, -1))


def dropout_key(rngs: nnx.Rngs | nnx.RngStream) -> jax.Array:
    """The next key of the `dropout` stream."""
    return rngs() if isinstance(rngs, nnx.RngStream) else rngs.dropout()


def alpha_dropout(
    x: jax.Array,
    rate: float = 0.5,
    *,
    deterministic: bool,
    rngs: nnx.Rngs | nnx.RngStream | None,
    channels: bool = False,
) -> jax.Array:
    """`F.alpha_dropout`: dropped elements get SELU's negative saturation value, and mean and variance are kept.

    `channels` drops whole channels of (N, C, ...), as `F.feature_alpha_dropout`.
    """
    if deterministic or rate == 0:
        return x
    if rate == 1:
        return jnp.zeros_like(x)
    alpha = 1.7580993408473766  # -selu(-infinity)
    scale = 1 / math.sqrt((alpha**2 * rate + 1) * (1 - rate))
    shape = x.shape[:2] + (1,) * (x.ndim - 2) if channels else x.shape
    keep = jax.random.bernoulli(dropout_key(rngs), 1 - rate, shape)
    return jnp.where(keep, x, -alpha) * scale + alpha * scale * rate


class Dropout(nnx.Dropout):
    """PyTorch's `nn.Dropout`."""

    def __init__(self, p: float = 0.5, inplace: bool = False, *, rngs: nnx.Rngs):
        super().__init__(p, rngs=rngs)
        self.p = p


class Dropout1d(Dropout):
    """PyTorch's `nn.Dropout1d`: drops whole channels of (N, C, L) or (C, L)."""

    def __call__(self, x: jax.Array) -> jax.Array:
        """Drops channels, unless deterministic."""
        layer = nnx.Dropout(self.p, broadcast_dims=(-1,), deterministic=self.deterministic)
        return layer(x, rngs=self.rngs)


class Dropout2d(Dropout):
    """PyTorch's `nn.Dropout2d`: drops whole channels of (N, C, H, W)."""

    def __call__(self, x: jax.Array) -> jax.Array:
        """Drops channels, unless deterministic."""
        layer = nnx.Dropout(self.p, broadcast_dims=tuple(range(2, x.ndim)), deterministic=self.deterministic)
        return layer(x, rngs=self.rngs)


class Dropout3d(Dropout):
    """PyTorch's `nn.Dropout3d`: drops whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    def __call__(self, x: jax.Array) -> jax.Array:
        """Drops channels, unless deterministic."""
        layer = nnx.Dropout(self.p, broadcast_dims=(-3, -2, -1), deterministic=self.deterministic)
        return layer(x, rngs=self.rngs)


class DropPath(nnx.Dropout):
    """timm's `DropPath`: drops whole examples of a batch."""

    def __init__(self, drop_prob: float = 0.0, scale_by_keep: bool = True, *, rngs: nnx.Rngs):
        super().__init__(drop_prob, rngs=rngs)
        self.drop_prob, self.scale_by_keep = drop_prob, scale_by_keep

    def __call__(self, x: jax.Array) -> jax.Array:
        """Drops examples, unless deterministic."""
        layer = nnx.Dropout(self.drop_prob, broadcast_dims=tuple(range(1, x.ndim)), deterministic=self.deterministic)
        y = layer(x, rngs=self.rngs)
        return y if self.scale_by_keep or self.deterministic else y * (1 - self.drop_prob)


class AlphaDropout(Dropout):
    """PyTorch's `nn.AlphaDropout`, for networks of SELU."""

    def __call__(self, x: jax.Array) -> jax.Array:
        """Drops elements to SELU's negative saturation value, unless deterministic."""
        return alpha_dropout(x, self.p, deterministic=self.deterministic, rngs=self.rngs)


class FeatureAlphaDropout(Dropout):
    """PyTorch's `nn.FeatureAlphaDropout`: drops whole channels of (N, C, ...)."""

    def __call__(self, x: jax.Array) -> jax.Array:
        """Drops channels to SELU's negative saturation value, unless deterministic."""
        return alpha_dropout(x, self.p, deterministic=self.deterministic, rngs=self.rngs, channels=True)
