"""Distributions with PyTorch's parameters and methods. Draws are taken from an `nnx.Rngs`.

Source: https://docs.pytorch.org/docs/stable/distributions.html
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax


class Normal:
    """PyTorch's `Normal`: independent normal numbers with means `loc` and standard deviations `scale`."""

    def __init__(self, loc: Any, scale: Any):
        self.loc, self.scale = jnp.broadcast_arrays(jnp.asarray(loc, float), jnp.asarray(scale, float))
        self.mean, self.stddev, self.variance = self.loc, self.scale, self.scale**2

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        return self.loc + rngs.normal((*sample_shape, *self.loc.shape)) * self.scale

    def sample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws without gradients."""
        return lax.stop_gradient(self.rsample(sample_shape, rngs=rngs))

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        return -((value - self.loc) ** 2) / (2 * self.variance) - jnp.log(self.scale) - math.log(2 * math.pi) / 2

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + jnp.log(self.scale)


class Categorical:
    """PyTorch's `Categorical`: an index of the last axis of `probs`, which need no normalization, or of `logits`."""

    def __init__(self, probs: Any = None, logits: Any = None):
        if logits is None:
            probs = probs / probs.sum(-1, keepdims=True)
            epsilon = jnp.finfo(probs.dtype).eps
            logits = jnp.log(jnp.clip(probs, epsilon, 1 - epsilon))
            self.probs, self.logits = probs, logits
        else:
            self.logits = jax.nn.log_softmax(logits, axis=-1)
            self.probs = jax.nn.softmax(self.logits, axis=-1)

    def sample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Indices."""
        return rngs.categorical(jnp.log(self.probs), shape=(*sample_shape, *self.probs.shape[:-1]))

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the probability of indices."""
        value = jnp.asarray(value, int)
        shape = jnp.broadcast_shapes(value.shape, self.logits.shape[:-1])
        logits = jnp.broadcast_to(self.logits, (*shape, self.logits.shape[-1]))
        return jnp.take_along_axis(logits, jnp.broadcast_to(value, shape)[..., None], axis=-1)[..., 0]

    def entropy(self) -> jax.Array:
        """The entropy of each index."""
        return -jnp.sum(jnp.maximum(self.logits, jnp.finfo(self.logits.dtype).min) * self.probs, axis=-1)


class Bernoulli:
    """PyTorch's `Bernoulli`: 1 with probability `probs`, else 0."""

    def __init__(self, probs: Any = None, logits: Any = None):
        if logits is None:
            self.probs = jnp.asarray(probs, float)
            epsilon = jnp.finfo(self.probs.dtype).eps
            clipped = jnp.clip(self.probs, epsilon, 1 - epsilon)
            self.logits = jnp.log(clipped) - jnp.log1p(-clipped)
        else:
            self.logits = jnp.asarray(logits, float)
            self.probs = jax.nn.sigmoid(self.logits)
        self.mean = self.probs

    def sample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Zeros and ones, as floating-point numbers."""
        shape = (*sample_shape, *self.probs.shape)
        return rngs.bernoulli(lax.stop_gradient(self.probs), shape).astype(self.probs.dtype)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the probability."""
        return value * self.logits - jax.nn.softplus(self.logits)

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        return jax.nn.softplus(self.logits) - self.logits * self.probs
