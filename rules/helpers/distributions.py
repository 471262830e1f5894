"""Distributions with PyTorch's parameters and methods. Draws are taken from an `nnx.Rngs`.

Source: https://docs.pytorch.org/docs/stable/distributions.html
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from .math import absolute


def float_arrays(*values: Any) -> list[jax.Array]:
    """Parameters of a distribution: floating-point arrays of one shape."""
    return jnp.broadcast_arrays(*(1.0 * jnp.asarray(value) for value in values))


def probabilities(probs: Any, logits: Any) -> tuple[jax.Array, jax.Array]:
    """The probabilities of ones and their log-odds, of which one is given. Those of 0 and 1 are finite."""
    if logits is None:
        (probs,) = float_arrays(probs)
        epsilon = jnp.finfo(probs.dtype).eps
        clipped = jnp.clip(probs, epsilon, 1 - epsilon)
        return probs, jnp.log(clipped) - jnp.log1p(-clipped)
    (logits,) = float_arrays(logits)
    return jax.nn.sigmoid(logits), logits


class Distribution:
    """What PyTorch's distributions share: a batch of them, each of numbers of an event's shape."""

    batch_shape: tuple[int, ...]
    event_shape: tuple[int, ...] = ()
    variance: jax.Array

    @property
    def stddev(self) -> jax.Array:
        """The standard deviation."""
        return jnp.sqrt(self.variance)

    def extended_shape(self, sample_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of draws."""
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample")

    def sample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws without gradients."""
        return jax.lax.stop_gradient(self.rsample(sample_shape, rngs=rngs))

    def kl_divergence(self, other: Any) -> jax.Array:
        """The Kullback-Leibler divergence from a distribution of the same class."""
        if type(self).__name__ != type(other).__name__:  # another file may have a copy of the class
            raise NotImplementedError(f"no divergence of {type(self).__name__} from {type(other).__name__}")
        return self.divergence(other)

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        raise NotImplementedError(f"{type(self).__name__} has no divergence")


class Normal(Distribution):
    """PyTorch's `Normal`: independent normal numbers with means `loc` and standard deviations `scale`."""

    def __init__(self, loc: Any, scale: Any):
        self.loc, self.scale = float_arrays(loc, scale)
        self.batch_shape = self.loc.shape
        self.mean, self.mode, self.variance = self.loc, self.loc, self.scale**2

    @property
    def stddev(self) -> jax.Array:
        """The standard deviation."""
        return self.scale

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        return self.loc + rngs.normal(self.extended_shape(sample_shape), self.loc.dtype) * self.scale

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        return -((value - self.loc) ** 2) / (2 * self.variance) - jnp.log(self.scale) - math.log(2 * math.pi) / 2

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + jnp.log(self.scale)

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        ratio = (self.scale / other.scale) ** 2
        return 0.5 * (ratio + ((self.loc - other.loc) / other.scale) ** 2 - 1 - jnp.log(ratio))


class LogNormal(Distribution):
    """PyTorch's `LogNormal`: numbers whose logarithms are normal."""

    def __init__(self, loc: Any, scale: Any):
        self.base_dist = Normal(loc, scale)
        self.loc, self.scale, self.batch_shape = self.base_dist.loc, self.base_dist.scale, self.base_dist.batch_shape
        self.mean = jnp.exp(self.loc + self.scale**2 / 2)
        self.mode = jnp.exp(self.loc - self.scale**2)
        self.variance = jnp.expm1(self.scale**2) * jnp.exp(2 * self.loc + self.scale**2)

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        return jnp.exp(self.base_dist.rsample(sample_shape, rngs=rngs))

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        return self.base_dist.log_prob(jnp.log(value)) - jnp.log(value)

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        return self.base_dist.entropy() + self.loc

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        return self.base_dist.divergence(other.base_dist)


class HalfNormal(Distribution):
    """PyTorch's `HalfNormal`: absolute values of normal numbers with mean 0."""

    def __init__(self, scale: Any):
        self.base_dist = Normal(0.0, scale)
        self.scale, self.batch_shape = self.base_dist.scale, self.base_dist.batch_shape
        self.mean, self.mode = self.scale * math.sqrt(2 / math.pi), jnp.zeros_like(self.scale)
        self.variance = self.scale**2 * (1 - 2 / math.pi)

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        return absolute(self.base_dist.rsample(sample_shape, rngs=rngs))

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        return jnp.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -jnp.inf)

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        return self.base_dist.entropy() - math.log(2)

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        return self.base_dist.divergence(other.base_dist)


class Categorical(Distribution):
    """PyTorch's `Categorical`: an index of the last axis of `probs`, which need no normalization, or of `logits`."""

    def __init__(self, probs: Any = None, logits: Any = None):
        if logits is None:
            self.probs = probs / probs.sum(-1, keepdims=True)
            epsilon = jnp.finfo(self.probs.dtype).eps
            self.logits = jnp.log(jnp.clip(self.probs, epsilon, 1 - epsilon))
        else:
            self.logits = jax.nn.log_softmax(logits, axis=-1)
            self.probs = jax.nn.softmax(self.logits, axis=-1)
        self.param_shape, self.batch_shape = self.probs.shape, self.probs.shape[:-1]

    @property
    def mode(self) -> jax.Array:
        """The most likely index."""
        return jnp.argmax(self.probs, axis=-1)

    def sample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Indices."""
        if sample_shape == ():
            return rngs.categorical(jnp.log(self.probs))
        return rngs.categorical(jnp.log(self.probs), shape=self.extended_shape(sample_shape))

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the probability of indices."""
        index = jnp.asarray(value, int)
        return jnp.vectorize(jnp.take, signature="(n),()->()")(self.logits, index)

    def entropy(self) -> jax.Array:
        """The entropy of each index."""
        return -jnp.sum(jnp.maximum(self.logits, jnp.finfo(self.logits.dtype).min) * self.probs, axis=-1)

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        each = self.probs * (self.logits - other.logits)
        return jnp.sum(jnp.where(self.probs == 0, 0, jnp.where(other.probs == 0, jnp.inf, each)), axis=-1)


class Bernoulli(Distribution):
    """PyTorch's `Bernoulli`: 1 with probability `probs`, else 0."""

    def __init__(self, probs: Any = None, logits: Any = None):
        self.probs, self.logits = probabilities(probs, logits)
        self.param_shape = self.batch_shape = self.probs.shape
        self.mean, self.variance = self.probs, self.probs * (1 - self.probs)

    @property
    def mode(self) -> jax.Array:
        """The likelier number, NaN where neither is."""
        return jnp.where(self.probs == 0.5, jnp.nan, self.probs > 0.5)

    def sample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Zeros and ones, as floating-point numbers."""
        return rngs.bernoulli(jax.lax.stop_gradient(self.probs), self.extended_shape(sample_shape)).astype(
            self.probs.dtype
        )

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the probability."""
        return value * self.logits - jax.nn.softplus(self.logits)

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        return jax.nn.softplus(self.logits) - self.logits * self.probs

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        ones = self.probs * (jax.nn.softplus(-other.logits) - jax.nn.softplus(-self.logits))
        zeros = (1 - self.probs) * (jax.nn.softplus(other.logits) - jax.nn.softplus(self.logits))
        ones = jnp.where(self.probs == 0, 0, jnp.where(other.probs == 0, jnp.inf, ones))
        return ones + jnp.where(self.probs == 1, 0, jnp.where(other.probs == 1, jnp.inf, zeros))
