"""Padding in PyTorch's order (pairs for the last axis first), and the padding layers, channels first.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pad.html
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import nnx

from .pooling import per_axis


def pad(x: jax.Array, padding: Sequence[int], mode: str = "constant", value: float | None = None) -> jax.Array:
    """Pads the last axes of `x` by pairs (before, after), the last axis first; negative numbers crop.

    `mode` is constant (filled with `value`, 0 for None), reflect, replicate or circular.
    """
    padded = list(zip(padding[::2], padding[1::2], strict=True))[::-1]
    pairs = [(0, 0)] * (x.ndim - len(padded)) + padded
    crops = [slice(max(-before, 0), min(after, 0) or None) for before, after in pairs]
    widths = [(max(before, 0), max(after, 0)) for before, after in pairs]
    if mode == "constant":
        return jnp.pad(x, widths, constant_values=0 if value is None else value)[tuple(crops)]
    if mode == "circular":
        return jnp.pad(x[tuple(crops)], widths, "wrap")
    return jnp.pad(x, widths, {"reflect": "reflect", "replicate": "edge"}[mode])[tuple(crops)]


class PadNd(nnx.Module):
    """Pads the last `rank` axes by one number, or by pairs (before, after) with the last axis first."""

    rank: int
    mode: str
    value: float = 0.0

    def __init__(self, padding: int | Sequence[int], *, rngs: nnx.Rngs | None = None):
        self.padding = per_axis(padding, 2 * self.rank)

    def __call__(self, x: jax.Array) -> jax.Array:
        return pad(x, self.padding, self.mode, self.value)


class ConstantPadNd(PadNd):
    """Pads the last `rank` axes with a value."""

    mode = "constant"

    def __init__(self, padding: int | Sequence[int], value: float, *, rngs: nnx.Rngs | None = None):
        super().__init__(padding)
        self.value = value


class ConstantPad1d(ConstantPadNd):
    rank = 1


class ConstantPad2d(ConstantPadNd):
    rank = 2


class ConstantPad3d(ConstantPadNd):
    rank = 3


class ZeroPad1d(PadNd):
    rank, mode = 1, "constant"


class ZeroPad2d(PadNd):
    rank, mode = 2, "constant"


class ZeroPad3d(PadNd):
    rank, mode = 3, "constant"


class ReflectionPad1d(PadNd):
    rank, mode = 1, "reflect"


class ReflectionPad2d(PadNd):
    rank, mode = 2, "reflect"


class ReflectionPad3d(PadNd):
    rank, mode = 3, "reflect"


class ReplicationPad1d(PadNd):
    rank, mode = 1, "replicate"


class ReplicationPad2d(PadNd):
    rank, mode = 2, "replicate"


class ReplicationPad3d(PadNd):
    rank, mode = 3, "replicate"


class CircularPad1d(PadNd):
    rank, mode = 1, "circular"


class CircularPad2d(PadNd):
    rank, mode = 2, "circular"


class CircularPad3d(PadNd):
    rank, mode = 3, "circular"
