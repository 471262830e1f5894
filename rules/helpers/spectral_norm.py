"""Layers whose weight is divided by its spectral norm.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.spectral_norm.html
"""

import jax
import jax.numpy as jnp
from flax import nnx

from .container import Buffer


class SpectralNorm(nnx.SpectralNorm):
    """PyTorch's `spectral_norm(layer)`: the layer with its weight divided by the largest singular value.

    In training each call goes on towards that value, by power iterations. Flax's own layer writes the divided
    weight back into the layer; here the weight that is trained stays as it is.
    """

    layer_instance: nnx.Linear | nnx.Conv

    def __init__(
        self, layer: nnx.Linear | nnx.Conv, n_power_iterations: int = 1, eps: float = 1e-12, *, rngs: nnx.Rngs
    ):
        self.layer_instance = layer
        self.n_steps, self.epsilon = n_power_iterations, eps
        self.use_running_average = False
        outputs, inputs = self._matrix().shape
        self.weight_u = Buffer(self._unit(rngs.params.normal((outputs,))))
        self.weight_v = Buffer(self._unit(rngs.params.normal((inputs,))))

    def _matrix(self) -> jax.Array:
        """The weight, (outputs, inputs * kernel)."""
        kernel = self.layer_instance.kernel[...]
        return jnp.moveaxis(kernel, (-1, -2), (0, 1)).reshape(kernel.shape[-1], -1)

    def _unit(self, x: jax.Array) -> jax.Array:
        return x / jnp.maximum(jnp.linalg.norm(x), self.epsilon)

    def __call__(self, x: jax.Array) -> jax.Array:
        """What the layer gives with the divided weight."""
        matrix = self._matrix()
        if not self.use_running_average:
            constant = jax.lax.stop_gradient(matrix)
            for _ in range(self.n_steps):
                self.weight_v[...] = self._unit(constant.T @ self.weight_u[...])
                self.weight_u[...] = self._unit(constant @ self.weight_v[...])
        sigma = self.weight_u[...] @ matrix @ self.weight_v[...]
        layer = nnx.clone(self.layer_instance)
        layer.kernel[...] = layer.kernel[...] / sigma
        return layer(x)
