"""PyTorch's `reset_parameters`: the initial values of a layer, drawn anew.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html#torch.nn.Linear.reset_parameters
"""

import inspect
from typing import Any

import jax.numpy as jnp
from flax import nnx

from .names import LAYERS_WITH_WEIGHTS


def has_reset_parameters(module: Any) -> bool:
    """Whether PyTorch's `module` has a method `reset_parameters`: one of its own class, or that of a layer."""
    names = ("reset_parameters", "weight_ih", "weight_ih_l0")  # the weights are those of recurrent layers
    return isinstance(module, LAYERS_WITH_WEIGHTS) or any(hasattr(module, name) for name in names)


def reset_parameters(module: Any, rngs: nnx.Rngs) -> None:
    """Gives a module its initial values anew: by its own method, else as PyTorch's layer of its kind has them."""
    own = getattr(module, "reset_parameters", None)
    if own is None:
        reset_layer(module, rngs)
    else:
        own(**{"rngs": rngs} if "rngs" in inspect.signature(own).parameters else {})


def reset_layer(layer: Any, rngs: nnx.Rngs) -> None:
    """Gives a layer PyTorch's initial values anew.

    Kernels and biases are uniform in +-1/sqrt(n), with n inputs for each output, weights of recurrent layers with n
    their hidden size; embeddings are normal; scales are 1 and shifts 0, running means 0 and running variances 1.
    """
    if isinstance(layer, nnx.Linear | nnx.Conv | nnx.ConvTranspose):
        # A transposed convolution has its axes (..., out, in) where it has PyTorch's order of them.
        turned = isinstance(layer, nnx.ConvTranspose) and not layer.transpose_kernel
        n = layer.kernel.size // layer.kernel.shape[-2 if turned else -1]
        uniform = [layer.kernel, layer.bias]
    elif isinstance(layer, nnx.Embed):
        table = rngs.params.normal(layer.embedding.shape, layer.embedding.dtype)
        padding = getattr(layer, "padding_idx", None)
        layer.embedding[...] = table if padding is None else table.at[padding].set(0)
        return
    elif isinstance(layer, LAYERS_WITH_WEIGHTS):
        for name, value in {"scale": 1, "bias": 0, "mean": 0, "var": 1}.items():
            variable = getattr(layer, name, None)
            if isinstance(variable, nnx.Variable):
                variable[...] = jnp.full_like(variable[...], value)
        return
    elif hasattr(layer, "hidden_size"):
        n, uniform = layer.hidden_size, [v for v in vars(layer).values() if isinstance(v, nnx.Param)]
    else:
        raise TypeError(f"no initial values of {type(layer).__name__} are known here")
    for variable in uniform:
        if variable is not None:
            variable[...] = rngs.params.uniform(variable.shape, variable.dtype, -1, 1) * max(n, 1) ** -0.5
