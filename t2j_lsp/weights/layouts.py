"""How the standard Flax NNX layers name and store what PyTorch names and stores otherwise.

One rule per layer class, found by ``isinstance``, so that a subclass (a converted ``Conv2d``) follows its base.
Every mapping only moves elements, so it holds for gradients and optimizer moments as well as for parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from flax import nnx


def _same(array: Any) -> Any:
    return array


@dataclass(frozen=True)
class VariableLayout:
    """PyTorch's name for one variable of a layer, and the way there and back. Both ways take numpy or JAX arrays."""

    name: str
    to_torch: Callable[[Any], Any] = _same
    from_torch: Callable[[Any], Any] = _same


def _transpose(array: Any) -> Any:
    return array.T


def _kernel_last(array: Any) -> Any:
    """``(*kernel, a, b)`` to ``(b, a, *kernel)``."""
    return array.transpose(array.ndim - 1, array.ndim - 2, *range(array.ndim - 2))


def _kernel_first(array: Any) -> Any:
    """``(b, a, *kernel)`` to ``(*kernel, a, b)``."""
    return array.transpose(*range(2, array.ndim), 1, 0)


def _unflipped_last(array: Any) -> Any:
    """``(*kernel, in, out)``, not flipped, to torch's ``(in, out, *kernel)``, which ``conv_transpose2d`` flips."""
    spatial = range(array.ndim - 2)
    flipped = array[tuple(slice(None, None, -1) for _ in spatial)]
    return flipped.transpose(array.ndim - 2, array.ndim - 1, *spatial)


def _unflipped_first(array: Any) -> Any:
    moved = array.transpose(*range(2, array.ndim), 0, 1)
    return moved[tuple(slice(None, None, -1) for _ in range(array.ndim - 2))]


LINEAR = VariableLayout("weight", _transpose, _transpose)
CONV = VariableLayout("weight", _kernel_last, _kernel_first)
CONV_TRANSPOSE = VariableLayout("weight", _unflipped_last, _unflipped_first)


def _linear_general(layer: nnx.LinearGeneral, key: str, shape: tuple[int, ...]) -> VariableLayout:
    """A kernel ``(*in, *out)`` as torch's matrix ``(prod(out), prod(in))``, a bias ``(*out)`` as one axis."""
    if key == "bias":
        return VariableLayout("bias", lambda array: array.reshape(-1), lambda array: array.reshape(shape))
    rows = math.prod(shape[: len(layer.in_features)])
    return VariableLayout(
        "weight",
        lambda array: array.reshape(rows, -1).T,
        lambda array: array.T.reshape(shape),
    )


def layout(owner: object, key: str, shape: tuple[int, ...]) -> VariableLayout:
    """The layout of the variable ``owner.key``, whose value has ``shape``. Without a rule: its own name, unchanged."""
    match owner, key:
        case nnx.Linear(), "kernel":
            return LINEAR
        case nnx.LinearGeneral(), "kernel" | "bias" if not owner.batch_axis:
            return _linear_general(owner, key, shape)
        case nnx.Conv(), "kernel":
            return CONV
        case nnx.Conv(), "kernel_mask":  # a derived class's "mask", which nnx.Conv uses for its own
            return VariableLayout("mask")
        case nnx.ConvTranspose(), "kernel":
            return CONV if owner.transpose_kernel else CONV_TRANSPOSE
        case nnx.Embed(), "embedding":
            return VariableLayout("weight")
        case nnx.BatchNorm() | nnx.InstanceNorm(), "mean" | "var":
            return VariableLayout(f"running_{key}")
        case nnx.BatchNorm() | nnx.InstanceNorm() | nnx.LayerNorm() | nnx.GroupNorm() | nnx.RMSNorm(), "scale":
            return VariableLayout("weight")
        case nnx.PReLU(), "negative_slope" if shape == ():
            return VariableLayout("weight", lambda array: array.reshape(1), lambda array: array.reshape(()))
        case _:
            return VariableLayout(key)


@dataclass(frozen=True)
class Packed:
    """A torch entry that holds several variables: ``keys`` are ``(projection, variable)`` attributes of the owner."""

    name: str
    keys: tuple[tuple[str, str], ...]
    to_torch: Callable[..., Any]
    from_torch: Callable[[Any], tuple[Any, ...]]


def packed_attention(attention: nnx.MultiHeadAttention) -> tuple[Packed, ...]:
    """``torch.nn.MultiheadAttention``'s packed input projections; none where torch has no such module.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html
    """
    features = attention.qkv_features
    if attention.num_kv_heads != attention.num_heads or attention.in_features != features:
        return ()
    heads = (attention.num_heads, features // attention.num_heads)
    kernel, bias = (attention.in_features, *heads), heads
    projections = ("query", "key", "value")

    def split(array: Any) -> tuple[Any, ...]:
        return tuple(array[i * features : (i + 1) * features] for i in range(3))

    biases = Packed(
        "in_proj_bias",
        tuple((name, "bias") for name in projections),
        lambda *arrays: np.concatenate([np.asarray(a).reshape(-1) for a in arrays]),
        lambda array: tuple(part.reshape(bias) for part in split(array)),
    )
    packed = (biases,) if attention.use_bias else ()
    if attention.in_kv_features == attention.in_features:
        weights = Packed(
            "in_proj_weight",
            tuple((name, "kernel") for name in projections),
            lambda *arrays: np.concatenate([np.asarray(a).reshape(features, -1).T for a in arrays]),
            lambda array: tuple(part.T.reshape(kernel) for part in split(array)),
        )
        return (weights, *packed)
    separate = tuple(
        Packed(
            f"{name[0]}_proj_weight",
            ((name, "kernel"),),
            lambda array: array.reshape(array.shape[0], -1).T,
            lambda array: (array.T.reshape(-1, *heads),),
        )
        for name in projections
    )
    return (*separate, *packed)
