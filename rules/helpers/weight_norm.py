"""Layers whose weight is a direction and a length.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrizations.weight_norm.html
"""

import jax
import jax.numpy as jnp
from flax import nnx


class WeightNorm(nnx.WeightNorm):
    """PyTorch's `weight_norm(layer, dim=dim)`: the layer with its weight `scale * kernel / norm(kernel)`.

    `dim` is the axis of PyTorch's weight along which each slice has a length of its own. `parametrized` says that
    PyTorch calls the two `parametrizations.weight.original0` and `original1`, and not `weight_g` and `weight_v`.
    Flax's own layer writes the normalised weight back into the layer; here both stay what they are.
    """

    layer_instance: nnx.Linear | nnx.Conv | nnx.ConvTranspose

    def __init__(self, layer: nnx.Linear | nnx.Conv | nnx.ConvTranspose, dim: int = 0, *, parametrized: bool = True):
        self.layer_instance, self.parametrized = layer, parametrized
        swapped = isinstance(layer, nnx.ConvTranspose) and not layer.transpose_kernel
        kept = {0: -2 if swapped else -1, 1: -1 if swapped else -2}.get(dim, dim - 2) % layer.kernel[...].ndim
        self.axes = tuple(axis for axis in range(layer.kernel[...].ndim) if axis != kept)
        self.scale = nnx.Param(self._norm())

    def _norm(self) -> jax.Array:
        """The length of each slice of the kernel, which is not 0."""
        return jnp.sqrt(jnp.sum(self.layer_instance.kernel[...] ** 2, axis=self.axes, keepdims=True))

    def __call__(self, x: jax.Array) -> jax.Array:
        """What the layer gives with the normalised weight."""
        layer = nnx.clone(self.layer_instance)
        layer.kernel[...] = self.scale[...] * (layer.kernel[...] / self._norm())
        return layer(x)
