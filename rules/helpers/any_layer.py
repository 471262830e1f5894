"""The parameters of layers whose class only the running program knows, by PyTorch's names and in its layouts."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx


def flax_name(layer: Any, name: str) -> str:
    """What a layer of Flax calls PyTorch's `weight`, `running_mean` or `running_var`."""
    match layer:
        case nnx.Linear() | nnx.Conv() | nnx.ConvTranspose():
            names = {"weight": "kernel"}
        case nnx.BatchNorm() | nnx.LayerNorm() | nnx.GroupNorm() | nnx.InstanceNorm() | nnx.RMSNorm():
            names = {"weight": "scale", "running_mean": "mean", "running_var": "var"}
        case nnx.Embed():
            names = {"weight": "embedding"}
        case _:
            names = {}
    return names.get(name, name)


def torch_parameter(layer: Any, name: str, *default: Any) -> Any:
    """PyTorch's `layer.<name>`: a weight (out, in, *kernel_size) for a kernel (*kernel_size, in, out), else as it is.

    Args:
      layer: a layer of any class.
      name: "weight", "running_mean" or "running_var".
      default: what an object without it gives; else that is an AttributeError.
    """
    own = flax_name(layer, name)
    value = getattr(layer, own, *default)
    value = value[...] if isinstance(value, nnx.Variable) else value
    return jnp.moveaxis(value, (-1, -2), (0, 1)) if own == "kernel" else value


def set_torch_parameter(layer: Any, name: str, value: jax.Array) -> None:
    """Writes a value in PyTorch's layout, which is broadcast, into what PyTorch calls `layer.<name>`."""
    own = flax_name(layer, name)
    value = jnp.broadcast_to(value, torch_parameter(layer, name).shape)
    if own == "kernel":
        value = jnp.moveaxis(value, (0, 1), (-1, -2))
    getattr(layer, own)[...] = value
