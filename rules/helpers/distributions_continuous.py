"""Distributions of real numbers besides the normal ones, with PyTorch's parameters and methods.

Source: https://docs.pytorch.org/docs/stable/distributions.html
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from .distributions import Distribution, float_arrays
from .math import absolute


class Uniform(Distribution):
    """PyTorch's `Uniform`: numbers in [low, high)."""

    def __init__(self, low: Any, high: Any):
        self.low, self.high = float_arrays(low, high)
        self.batch_shape = self.low.shape
        self.mean, self.variance = (self.high + self.low) / 2, (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        return self.low + rngs.uniform(self.extended_shape(sample_shape), self.low.dtype) * (self.high - self.low)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        inside = (self.low <= value) & (value < self.high)
        return jnp.where(inside, 0, -jnp.inf) - jnp.log(self.high - self.low)

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        return jnp.log(self.high - self.low)

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        outside = (other.low > self.low) | (other.high < self.high)
        return jnp.where(outside, jnp.inf, jnp.log((other.high - other.low) / (self.high - self.low)))


class Exponential(Distribution):
    """PyTorch's `Exponential`: numbers with mean 1 / rate."""

    def __init__(self, rate: Any):
        (self.rate,) = float_arrays(rate)
        self.batch_shape = self.rate.shape
        self.mean, self.mode, self.variance = 1 / self.rate, jnp.zeros_like(self.rate), self.rate**-2

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        return rngs.exponential(self.extended_shape(sample_shape), self.rate.dtype) / self.rate

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        return jnp.log(self.rate) - self.rate * value

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        return 1 - jnp.log(self.rate)

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        ratio = other.rate / self.rate
        return ratio - jnp.log(ratio) - 1


class Laplace(Distribution):
    """PyTorch's `Laplace`: numbers around `loc`, whose distances have the mean `scale`."""

    def __init__(self, loc: Any, scale: Any):
        self.loc, self.scale = float_arrays(loc, scale)
        self.batch_shape = self.loc.shape
        self.mean, self.mode, self.variance = self.loc, self.loc, 2 * self.scale**2

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        dtype = self.loc.dtype
        u = rngs.uniform(self.extended_shape(sample_shape), dtype, minval=jnp.finfo(dtype).eps - 1, maxval=1)
        return self.loc - self.scale * jnp.sign(u) * jnp.log1p(-jnp.abs(u))

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        return -jnp.log(2 * self.scale) - absolute(value - self.loc) / self.scale

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        return 1 + jnp.log(2 * self.scale)

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        ratio, distance = self.scale / other.scale, absolute(self.loc - other.loc)
        return distance / other.scale + ratio * jnp.exp(-distance / self.scale) - jnp.log(ratio) - 1


class Cauchy(Distribution):
    """PyTorch's `Cauchy`: numbers around `loc`, half of which are nearer than `scale`."""

    def __init__(self, loc: Any, scale: Any):
        self.loc, self.scale = float_arrays(loc, scale)
        self.batch_shape, self.mode = self.loc.shape, self.loc
        self.mean, self.variance = jnp.full_like(self.loc, jnp.nan), jnp.full_like(self.loc, jnp.inf)

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        return self.loc + rngs.cauchy(self.extended_shape(sample_shape), self.loc.dtype) * self.scale

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        return -math.log(math.pi) - jnp.log(self.scale) - jnp.log1p(((value - self.loc) / self.scale) ** 2)

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        return math.log(4 * math.pi) + jnp.log(self.scale)

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        apart = (self.scale + other.scale) ** 2 + (self.loc - other.loc) ** 2
        return jnp.log(apart) - jnp.log(4 * self.scale * other.scale)


class HalfCauchy(Distribution):
    """PyTorch's `HalfCauchy`: absolute values of Cauchy numbers around 0."""

    def __init__(self, scale: Any):
        self.base_dist = Cauchy(0.0, scale)
        self.scale, self.batch_shape = self.base_dist.scale, self.base_dist.batch_shape
        self.mean = self.variance = jnp.full_like(self.scale, jnp.inf)
        self.mode = jnp.zeros_like(self.scale)

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        return absolute(self.base_dist.rsample(sample_shape, rngs=rngs))

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        return jnp.where(jnp.asarray(value) >= 0, self.base_dist.log_prob(value) + math.log(2), -jnp.inf)

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        return self.base_dist.entropy() - math.log(2)


class Gumbel(Distribution):
    """PyTorch's `Gumbel`: numbers with mode `loc`."""

    def __init__(self, loc: Any, scale: Any):
        self.loc, self.scale = float_arrays(loc, scale)
        self.batch_shape, self.mode = self.loc.shape, self.loc
        self.mean = self.loc + self.scale * jnp.euler_gamma
        self.variance = (math.pi * self.scale) ** 2 / 6

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        info = jnp.finfo(self.loc.dtype)
        u = rngs.uniform(self.extended_shape(sample_shape), self.loc.dtype, minval=info.tiny, maxval=1 - info.eps)
        return self.loc - self.scale * jnp.log(-jnp.log(u))

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        y = (self.loc - value) / self.scale
        return y - jnp.exp(y) - jnp.log(self.scale)

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        return jnp.log(self.scale) + 1 + jnp.euler_gamma

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        ratio, distance = self.scale / other.scale, (self.loc - other.loc) / other.scale
        grown = jnp.exp(jax.scipy.special.gammaln(1 + ratio) - distance)
        return distance - jnp.log(ratio) + ratio * jnp.euler_gamma + grown - 1 - jnp.euler_gamma


class Weibull(Distribution):
    """PyTorch's `Weibull`: powers of exponential numbers."""

    def __init__(self, scale: Any, concentration: Any):
        self.scale, self.concentration = float_arrays(scale, concentration)
        self.batch_shape = self.scale.shape
        k = 1 / self.concentration
        self.mean = self.scale * jnp.exp(jax.scipy.special.gammaln(1 + k))
        self.mode = self.scale * ((self.concentration - 1) / self.concentration) ** k
        self.variance = self.scale**2 * (
            jnp.exp(jax.scipy.special.gammaln(1 + 2 * k)) - jnp.exp(2 * jax.scipy.special.gammaln(1 + k))
        )

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        exponential = rngs.exponential(self.extended_shape(sample_shape), self.scale.dtype)
        return self.scale * exponential ** (1 / self.concentration)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        k, ratio = self.concentration, value / self.scale
        return jnp.log(k) - jnp.log(self.scale) + (k - 1) * jnp.log(ratio) - ratio**k

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        k = 1 / self.concentration
        return jnp.euler_gamma * (1 - k) + jnp.log(self.scale * k) + 1


class Pareto(Distribution):
    """PyTorch's `Pareto`: numbers from `scale` on, whose density falls with the power `alpha + 1`."""

    def __init__(self, scale: Any, alpha: Any):
        self.scale, self.alpha = float_arrays(scale, alpha)
        self.batch_shape, self.mode = self.scale.shape, self.scale
        first, second = jnp.maximum(self.alpha, 1), jnp.maximum(self.alpha, 2)
        self.mean = first * self.scale / (first - 1)
        self.variance = self.scale**2 * second / ((second - 1) ** 2 * (second - 2))

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        return self.scale * jnp.exp(rngs.exponential(self.extended_shape(sample_shape), self.scale.dtype) / self.alpha)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        return jnp.log(self.alpha) + self.alpha * jnp.log(self.scale) - (self.alpha + 1) * jnp.log(value)

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        return jnp.log(self.scale / self.alpha) + 1 + 1 / self.alpha

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        ratio = other.alpha / self.alpha
        each = other.alpha * jnp.log(self.scale / other.scale) - jnp.log(ratio) + ratio - 1
        return jnp.where(self.scale < other.scale, jnp.inf, each)


class Kumaraswamy(Distribution):
    """PyTorch's `Kumaraswamy`: numbers between 0 and 1, much like those of a beta distribution."""

    def __init__(self, concentration1: Any, concentration0: Any):
        self.concentration1, self.concentration0 = float_arrays(concentration1, concentration0)
        self.batch_shape = self.concentration1.shape
        self.mean = self.moment(1)
        self.variance = self.moment(2) - self.mean**2

    def moment(self, n: int) -> jax.Array:
        """The mean of the n-th powers."""
        ratio = 1 + n / self.concentration1
        return jnp.exp(
            jnp.log(self.concentration0)
            + jax.scipy.special.gammaln(ratio)
            + jax.scipy.special.gammaln(self.concentration0)
            - jax.scipy.special.gammaln(ratio + self.concentration0)
        )

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        u = rngs.uniform(self.extended_shape(sample_shape), self.concentration1.dtype)
        return (1 - u ** (1 / self.concentration0)) ** (1 / self.concentration1)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        a, b = self.concentration1, self.concentration0
        return jnp.log(a) + jnp.log(b) + (a - 1) * jnp.log(value) + (b - 1) * jnp.log1p(-(value**a))

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        a, b = self.concentration1, self.concentration0
        harmonic = jax.scipy.special.digamma(b + 1) + jnp.euler_gamma
        return 1 - 1 / b + (1 - 1 / a) * harmonic - jnp.log(a) - jnp.log(b)
