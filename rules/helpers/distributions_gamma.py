"""The gamma distribution and those made of it, with PyTorch's parameters and methods.

Source: https://docs.pytorch.org/docs/stable/distributions.html
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from .distributions import Distribution, float_arrays
from .special import xlogy


class Gamma(Distribution):
    """PyTorch's `Gamma`: numbers with mean concentration / rate."""

    def __init__(self, concentration: Any, rate: Any):
        self.concentration, self.rate = float_arrays(concentration, rate)
        self.batch_shape = self.rate.shape
        self.mean, self.variance = self.concentration / self.rate, self.concentration / self.rate**2
        self.mode = jnp.maximum((self.concentration - 1) / self.rate, 0)

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients. None is 0."""
        draws = rngs.gamma(self.concentration, self.extended_shape(sample_shape), self.rate.dtype) / self.rate
        return jnp.maximum(draws, jnp.finfo(draws.dtype).tiny)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        powers = xlogy(self.concentration, self.rate) + xlogy(self.concentration - 1, value)
        return powers - self.rate * value - jax.scipy.special.gammaln(self.concentration)

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        a = self.concentration
        return a - jnp.log(self.rate) + jax.scipy.special.gammaln(a) + (1 - a) * jax.scipy.special.digamma(a)

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        a, b = self.concentration, other.concentration
        constants = b * jnp.log(self.rate / other.rate) + jax.scipy.special.gammaln(b) - jax.scipy.special.gammaln(a)
        return constants + (a - b) * jax.scipy.special.digamma(a) + (other.rate - self.rate) * (a / self.rate)


class Chi2(Gamma):
    """PyTorch's `Chi2`: sums of `df` squared normal numbers."""

    def __init__(self, df: Any):
        super().__init__(0.5 * df, 0.5)
        self.df = 2 * self.concentration


class InverseGamma(Distribution):
    """PyTorch's `InverseGamma`: 1 divided by gamma numbers."""

    def __init__(self, concentration: Any, rate: Any):
        self.base_dist = Gamma(concentration, rate)
        self.concentration, self.rate = self.base_dist.concentration, self.base_dist.rate
        self.batch_shape, self.mode = self.rate.shape, self.rate / (self.concentration + 1)
        a = self.concentration
        self.mean = jnp.where(a > 1, self.rate / (a - 1), jnp.inf)
        self.variance = jnp.where(a > 2, self.rate**2 / ((a - 1) ** 2 * (a - 2)), jnp.inf)

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        return 1 / self.base_dist.rsample(sample_shape, rngs=rngs)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        return self.base_dist.log_prob(1 / value) - 2 * jnp.log(value)

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        a = self.concentration
        return a + jnp.log(self.rate) + jax.scipy.special.gammaln(a) - (1 + a) * jax.scipy.special.digamma(a)

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        return self.base_dist.divergence(other.base_dist)


class Dirichlet(Distribution):
    """PyTorch's `Dirichlet`: shares of the last axis, which sum up to 1."""

    def __init__(self, concentration: Any):
        self.concentration = jnp.asarray(concentration)
        self.batch_shape, self.event_shape = self.concentration.shape[:-1], self.concentration.shape[-1:]
        total = self.concentration.sum(-1, keepdims=True)
        self.mean = self.concentration / total
        self.variance = self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        return rngs.dirichlet(self.concentration, (*sample_shape, *self.batch_shape), self.concentration.dtype)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        a = self.concentration
        return xlogy(a - 1, value).sum(-1) + jax.scipy.special.gammaln(a.sum(-1)) - jax.scipy.special.gammaln(a).sum(-1)

    def entropy(self) -> jax.Array:
        """The entropy of each vector."""
        a, total = self.concentration, self.concentration.sum(-1)
        constants = jax.scipy.special.gammaln(a).sum(-1) - jax.scipy.special.gammaln(total)
        return (
            constants
            - (a.shape[-1] - total) * jax.scipy.special.digamma(total)
            - ((a - 1) * jax.scipy.special.digamma(a)).sum(-1)
        )

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        a, b = self.concentration, other.concentration
        constants = (
            jax.scipy.special.gammaln(a.sum(-1))
            - jax.scipy.special.gammaln(b.sum(-1))
            - (jax.scipy.special.gammaln(a) - jax.scipy.special.gammaln(b)).sum(-1)
        )
        return constants + (
            (a - b) * (jax.scipy.special.digamma(a) - jax.scipy.special.digamma(a.sum(-1, keepdims=True)))
        ).sum(-1)


class Beta(Distribution):
    """PyTorch's `Beta`: numbers between 0 and 1."""

    def __init__(self, concentration1: Any, concentration0: Any):
        self.concentration1, self.concentration0 = float_arrays(concentration1, concentration0)
        self.batch_shape = self.concentration1.shape
        a, b = self.concentration1, self.concentration0
        self.mean, self.variance = a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        a, b = self.concentration1, self.concentration0
        return rngs.beta(a, b, self.extended_shape(sample_shape), a.dtype)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        a, b = self.concentration1, self.concentration0
        return (
            xlogy(a - 1, value)
            + xlogy(b - 1, 1 - value)
            + jax.scipy.special.gammaln(a + b)
            - jax.scipy.special.gammaln(a)
            - jax.scipy.special.gammaln(b)
        )

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        a, b = self.concentration1, self.concentration0
        constants = jax.scipy.special.gammaln(a) + jax.scipy.special.gammaln(b) - jax.scipy.special.gammaln(a + b)
        return (
            constants
            - (2 - a - b) * jax.scipy.special.digamma(a + b)
            - (a - 1) * jax.scipy.special.digamma(a)
            - (b - 1) * jax.scipy.special.digamma(b)
        )

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        a, b, c, d = self.concentration1, self.concentration0, other.concentration1, other.concentration0
        constants = (
            jax.scipy.special.gammaln(c)
            + jax.scipy.special.gammaln(d)
            + jax.scipy.special.gammaln(a + b)
            - jax.scipy.special.gammaln(a)
            - jax.scipy.special.gammaln(b)
            - jax.scipy.special.gammaln(c + d)
        )
        return (
            constants
            + (a - c) * jax.scipy.special.digamma(a)
            + (b - d) * jax.scipy.special.digamma(b)
            + (c + d - a - b) * jax.scipy.special.digamma(a + b)
        )


class StudentT(Distribution):
    """PyTorch's `StudentT`: numbers around `loc` with `df` degrees of freedom."""

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0):
        self.df, self.loc, self.scale = float_arrays(df, loc, scale)
        self.batch_shape, self.mode = self.df.shape, self.loc
        self.mean = jnp.where(self.df <= 1, jnp.nan, self.loc)
        finite = self.scale**2 * self.df / jnp.where(self.df > 2, self.df - 2, 1)
        self.variance = jnp.where(self.df > 2, finite, jnp.where(self.df > 1, jnp.inf, jnp.nan))

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        shape = self.extended_shape(sample_shape)
        normal = rngs.normal(shape, self.df.dtype)
        chi2 = 2 * rngs.gamma(self.df / 2, shape, self.df.dtype)
        return self.loc + self.scale * normal * jnp.sqrt(self.df / chi2)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        half, y = self.df / 2, (value - self.loc) / self.scale
        constants = (
            jnp.log(self.scale)
            + 0.5 * jnp.log(math.pi * self.df)
            + jax.scipy.special.gammaln(half)
            - jax.scipy.special.gammaln(half + 0.5)
        )
        return -(half + 0.5) * jnp.log1p(y**2 / self.df) - constants

    def entropy(self) -> jax.Array:
        """The entropy of each number."""
        half = self.df / 2
        constants = (
            jnp.log(self.scale)
            + 0.5 * jnp.log(math.pi * self.df)
            + jax.scipy.special.gammaln(half)
            - jax.scipy.special.gammaln(half + 0.5)
        )
        return constants + (half + 0.5) * (jax.scipy.special.digamma(half + 0.5) - jax.scipy.special.digamma(half))


class FisherSnedecor(Distribution):
    """PyTorch's `FisherSnedecor`: ratios of two chi-squared numbers, each divided by its degrees of freedom."""

    def __init__(self, df1: Any, df2: Any):
        self.df1, self.df2 = float_arrays(df1, df2)
        self.batch_shape = self.df1.shape
        df1, df2 = self.df1, self.df2
        self.mean = jnp.where(df2 <= 2, jnp.nan, df2 / jnp.where(df2 <= 2, 1, df2 - 2))
        spread = df1 * (df2 - 2) ** 2 * (df2 - 4)
        self.variance = jnp.where(df2 <= 4, jnp.nan, 2 * df2**2 * (df1 + df2 - 2) / jnp.where(df2 <= 4, 1, spread))

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        first = Gamma(self.df1 / 2, self.df1).rsample(sample_shape, rngs=rngs)
        return first / Gamma(self.df2 / 2, self.df2).rsample(sample_shape, rngs=rngs)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        constants = (
            jax.scipy.special.gammaln(a + b)
            - jax.scipy.special.gammaln(a)
            - jax.scipy.special.gammaln(b)
            + a * jnp.log(ratio)
        )
        return constants + (a - 1) * jnp.log(value) - (a + b) * jnp.log1p(ratio * value)
