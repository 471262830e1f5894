"""Distributions of counts and of one-hot vectors, with PyTorch's parameters and methods.

Source: https://docs.pytorch.org/docs/stable/distributions.html
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from .distributions import Categorical, Distribution, float_arrays, probabilities
from .special import xlogy


class Poisson(Distribution):
    """PyTorch's `Poisson`: counts with mean `rate`."""

    def __init__(self, rate: Any):
        (self.rate,) = float_arrays(rate)
        self.batch_shape = self.rate.shape
        self.mean, self.variance, self.mode = self.rate, self.rate, jnp.floor(self.rate)

    def sample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Counts, as floating-point numbers."""
        return rngs.poisson(jax.lax.stop_gradient(self.rate), self.extended_shape(sample_shape)).astype(self.rate.dtype)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the probability."""
        return xlogy(value, self.rate) - self.rate - jax.scipy.special.gammaln(value + 1)

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        return self.rate * (jnp.log(self.rate) - jnp.log(other.rate)) - (self.rate - other.rate)


class Geometric(Distribution):
    """PyTorch's `Geometric`: how many zeros come before the first 1, which has probability `probs`."""

    def __init__(self, probs: Any = None, logits: Any = None):
        self.probs, self.logits = probabilities(probs, logits)
        self.param_shape = self.batch_shape = self.probs.shape
        self.mean, self.mode = 1 / self.probs - 1, jnp.zeros_like(self.probs)
        self.variance = (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Counts, as floating-point numbers."""
        u = rngs.uniform(self.extended_shape(sample_shape), self.probs.dtype)
        u = jnp.maximum(u, jnp.finfo(u.dtype).tiny)
        return jax.lax.stop_gradient(jnp.floor(jnp.log(u) / jnp.log1p(-self.probs)))

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the probability."""
        probs = jnp.where((self.probs == 1) & (value == 0), 0, self.probs)
        return value * jnp.log1p(-probs) + jnp.log(self.probs)

    def entropy(self) -> jax.Array:
        """The entropy of each count."""
        return (jax.nn.softplus(self.logits) - self.logits * self.probs) / self.probs

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        return -self.entropy() - jnp.log1p(-other.probs) / self.probs - other.logits


class Binomial(Distribution):
    """PyTorch's `Binomial`: how many of `total_count` numbers are 1, each with probability `probs`."""

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None):
        self.probs, self.logits = probabilities(probs, logits)
        self.total_count, self.probs, self.logits = float_arrays(total_count, self.probs, self.logits)
        self.param_shape = self.batch_shape = self.probs.shape
        self.mean, self.variance = self.total_count * self.probs, self.total_count * self.probs * (1 - self.probs)
        self.mode = jnp.minimum(jnp.floor((self.total_count + 1) * self.probs), self.total_count)

    def sample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Counts, as floating-point numbers."""
        probs = jax.lax.stop_gradient(self.probs)
        return rngs.binomial(self.total_count, probs, self.extended_shape(sample_shape), probs.dtype)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the probability."""
        n = self.total_count
        ways = (
            jax.scipy.special.gammaln(n + 1)
            - jax.scipy.special.gammaln(value + 1)
            - jax.scipy.special.gammaln(n - value + 1)
        )
        return value * self.logits + ways - n * jax.nn.softplus(self.logits)

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one of as many numbers."""
        odds = self.probs * (self.logits - other.logits) + jnp.log1p(-self.probs) - jnp.log1p(-other.probs)
        return self.total_count * odds


class NegativeBinomial(Distribution):
    """PyTorch's `NegativeBinomial`: how many ones, of probability `probs`, come before `total_count` zeros."""

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None):
        self.probs, self.logits = probabilities(probs, logits)
        self.total_count, self.probs, self.logits = float_arrays(total_count, self.probs, self.logits)
        self.param_shape = self.batch_shape = self.probs.shape
        self.mean = self.total_count * jnp.exp(self.logits)
        self.variance = self.mean / jax.nn.sigmoid(-self.logits)
        self.mode = jnp.maximum(jnp.floor((self.total_count - 1) * jnp.exp(self.logits)), 0)

    def sample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Counts, as floating-point numbers."""
        rate = rngs.gamma(self.total_count, self.extended_shape(sample_shape), self.probs.dtype) * jnp.exp(self.logits)
        return rngs.poisson(jax.lax.stop_gradient(rate)).astype(rate.dtype)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the probability."""
        n = self.total_count
        ways = jnp.where(
            n + value == 0,
            0,
            jax.scipy.special.gammaln(n + value)
            - jax.scipy.special.gammaln(1.0 + value)
            - jax.scipy.special.gammaln(n),
        )
        return n * jax.nn.log_sigmoid(-self.logits) + value * jax.nn.log_sigmoid(self.logits) + ways


class Multinomial(Distribution):
    """PyTorch's `Multinomial`: how often each index of the last axis of `probs` is drawn, of `total_count` times."""

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None):
        self.total_count, self.indices = total_count, Categorical(probs, logits)
        self.probs, self.logits = self.indices.probs, self.indices.logits
        self.batch_shape, self.event_shape = self.probs.shape[:-1], self.probs.shape[-1:]
        self.mean, self.variance = self.probs * total_count, total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Counts, as floating-point numbers."""
        draws = self.indices.sample((self.total_count, *sample_shape), rngs=rngs)
        return jax.nn.one_hot(draws, self.probs.shape[-1], dtype=self.probs.dtype).sum(0)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the probability."""
        logits = jnp.where((value == 0) & (self.logits == -jnp.inf), 0, self.logits)
        return (
            jax.scipy.special.gammaln(value.sum(-1) + 1.0)
            - jax.scipy.special.gammaln(value + 1.0).sum(-1)
            + (logits * value).sum(-1)
        )


class OneHotCategorical(Distribution):
    """PyTorch's `OneHotCategorical`: a vector of zeros with a 1 at the index that a `Categorical` draws."""

    def __init__(self, probs: Any = None, logits: Any = None):
        self.indices = Categorical(probs, logits)
        self.probs, self.logits = self.indices.probs, self.indices.logits
        self.batch_shape, self.event_shape = self.probs.shape[:-1], self.probs.shape[-1:]
        self.param_shape = self.probs.shape
        self.mean, self.variance = self.probs, self.probs * (1 - self.probs)

    @property
    def mode(self) -> jax.Array:
        """The most likely vector."""
        return jax.nn.one_hot(self.indices.mode, self.probs.shape[-1], dtype=self.probs.dtype)

    def sample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Vectors of zeros and ones."""
        draws = self.indices.sample(sample_shape, rngs=rngs)
        return jax.nn.one_hot(draws, self.probs.shape[-1], dtype=self.probs.dtype)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the probability."""
        return self.indices.log_prob(jnp.argmax(value, axis=-1))

    def entropy(self) -> jax.Array:
        """The entropy of each vector."""
        return self.indices.entropy()

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        return self.indices.divergence(other.indices)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """PyTorch's `OneHotCategoricalStraightThrough`: draws have the gradients of the probabilities."""

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws with the gradients of the probabilities."""
        return self.sample(sample_shape, rngs=rngs) + (self.probs - jax.lax.stop_gradient(self.probs))


class RelaxedBernoulli(Distribution):
    """PyTorch's `RelaxedBernoulli`: numbers between 0 and 1, nearer to them at low temperatures."""

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None):
        self.temperature = temperature
        self.probs, self.logits = probabilities(probs, logits)
        self.batch_shape = self.probs.shape

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        info = jnp.finfo(self.probs.dtype)
        u = jnp.clip(rngs.uniform(self.extended_shape(sample_shape), self.probs.dtype), info.eps, 1 - info.eps)
        probs = jnp.clip(self.probs, info.eps, 1 - info.eps)
        noise = jnp.log(u) - jnp.log1p(-u) + jnp.log(probs) - jnp.log1p(-probs)
        return jnp.clip(jax.nn.sigmoid(noise / self.temperature), info.tiny, 1 - info.eps)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        info = jnp.finfo(self.probs.dtype)
        value = jnp.clip(value, info.tiny, 1 - info.eps)
        logit = jnp.log(value) - jnp.log1p(-value)
        apart = self.logits - logit * self.temperature
        density = jnp.log(self.temperature) + apart - 2 * jnp.log1p(jnp.exp(apart))
        return density + jax.nn.softplus(-logit) + jax.nn.softplus(logit)


class RelaxedOneHotCategorical(Distribution):
    """PyTorch's `RelaxedOneHotCategorical`: shares of the last axis, nearer to one-hot at low temperatures."""

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None):
        self.temperature, self.indices = temperature, Categorical(probs, logits)
        self.probs, self.logits = self.indices.probs, self.indices.logits
        self.batch_shape, self.event_shape = self.probs.shape[:-1], self.probs.shape[-1:]

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        info = jnp.finfo(self.logits.dtype)
        u = jnp.clip(rngs.uniform(self.extended_shape(sample_shape), self.logits.dtype), info.eps, 1 - info.eps)
        return jax.nn.softmax((self.logits - jnp.log(-jnp.log(u))) / self.temperature, axis=-1)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        k = self.probs.shape[-1]
        score = jax.nn.log_softmax(self.logits - jnp.log(value) * self.temperature, axis=-1).sum(-1)
        return score + jax.scipy.special.gammaln(1.0 * k) + (k - 1) * jnp.log(self.temperature) - jnp.log(value).sum(-1)
