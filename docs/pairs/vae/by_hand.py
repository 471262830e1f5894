"""By hand, nearly the same lines: the module keeps `rngs` to draw from, and the loss is optax's. The conversion gives
layers PyTorch's initial values, and draws in the dtype of the mean.
"""

import jax.numpy as jnp
import optax
from flax import nnx


class VAE(nnx.Module):
    def __init__(self, features=20, hidden=16, latent=3, *, rngs: nnx.Rngs):
        self.encode = nnx.Linear(features, hidden, rngs=rngs)
        self.mean = nnx.Linear(hidden, latent, rngs=rngs)
        self.log_var = nnx.Linear(hidden, latent, rngs=rngs)
        self.decode = nnx.Sequential(
            nnx.Linear(latent, hidden, rngs=rngs), nnx.relu, nnx.Linear(hidden, features, rngs=rngs)
        )
        self.rngs = rngs.fork()

    def __call__(self, x):
        h = nnx.relu(self.encode(x))
        mean, log_var = self.mean(h), self.log_var(h)
        z = mean + jnp.exp(0.5 * log_var) * self.rngs.normal(mean.shape)
        return self.decode(z), mean, log_var


def loss_function(logits, x, mean, log_var):
    likelihood = jnp.sum(optax.sigmoid_binary_cross_entropy(logits, x))
    divergence = -0.5 * jnp.sum(1 + log_var - mean**2 - jnp.exp(log_var))
    return likelihood + divergence
