"""Sampling that PyTorch has as one call."""

import jax
import jax.numpy as jnp
from flax import nnx


def multinomial(rngs: nnx.Rngs, weights: jax.Array, num_samples: int, replacement: bool = False) -> jax.Array:
    """Draws `num_samples` indices from each row of unnormalised `weights` (..., n), as torch.multinomial does."""
    shape = (num_samples, *weights.shape[:-1])
    draws = rngs.categorical(jnp.log(weights), axis=-1, shape=shape, replace=replacement)
    return jnp.moveaxis(draws, 0, -1)
