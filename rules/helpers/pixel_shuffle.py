"""Moving values between channels and pixels as PyTorch orders them, channels first."""

import math

import jax
from flax import nnx


def pixel_shuffle(x: jax.Array, upscale_factor: int) -> jax.Array:
    """(..., C * r * r, H, W) to (..., C, H * r, W * r), with the channel as the slowest of the three factors.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pixel_shuffle.html
    """
    r = upscale_factor
    *lead, channels, height, width = x.shape
    x = x.reshape(math.prod(lead), channels // r**2, r, r, height, width).transpose(0, 1, 4, 2, 5, 3)
    return x.reshape(*lead, channels // r**2, height * r, width * r)


def pixel_unshuffle(x: jax.Array, downscale_factor: int) -> jax.Array:
    """(..., C, H * r, W * r) to (..., C * r * r, H, W): undoes `pixel_shuffle`.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pixel_unshuffle.html
    """
    r = downscale_factor
    *lead, channels, height, width = x.shape
    x = x.reshape(math.prod(lead), channels, height // r, r, width // r, r).transpose(0, 1, 3, 5, 2, 4)
    return x.reshape(*lead, channels * r**2, height // r, width // r)


def channel_shuffle(x: jax.Array, groups: int) -> jax.Array:
    """Interleaves `groups` equal groups of channels (axis 1).

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.ChannelShuffle.html
    """
    return x.reshape(x.shape[0], groups, -1, *x.shape[2:]).swapaxes(1, 2).reshape(x.shape)


class PixelShuffle(nnx.Module):
    """(..., C * r * r, H, W) to (..., C, H * r, W * r)."""

    def __init__(self, upscale_factor: int, *, rngs: nnx.Rngs | None = None):
        self.upscale_factor = upscale_factor

    def __call__(self, x: jax.Array) -> jax.Array:
        return pixel_shuffle(x, self.upscale_factor)


class PixelUnshuffle(nnx.Module):
    """(..., C, H * r, W * r) to (..., C * r * r, H, W)."""

    def __init__(self, downscale_factor: int, *, rngs: nnx.Rngs | None = None):
        self.downscale_factor = downscale_factor

    def __call__(self, x: jax.Array) -> jax.Array:
        return pixel_unshuffle(x, self.downscale_factor)


class ChannelShuffle(nnx.Module):
    """Interleaves `groups` equal groups of channels (axis 1)."""

    def __init__(self, groups: int, *, rngs: nnx.Rngs | None = None):
        self.groups = groups

    def __call__(self, x: jax.Array) -> jax.Array:
        return channel_shuffle(x, self.groups)
