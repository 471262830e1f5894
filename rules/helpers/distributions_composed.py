"""Distributions of vectors, and those made of other distributions and of transforms, as in PyTorch.

Source: https://docs.pytorch.org/docs/stable/distributions.html
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from .distributions import Distribution


class MultivariateNormal(Distribution):
    """PyTorch's `MultivariateNormal`: vectors with the mean `loc` and a covariance, of which one form is given."""

    def __init__(self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None):
        if covariance_matrix is not None:
            scale_tril = jnp.linalg.cholesky(covariance_matrix)
        elif precision_matrix is not None:
            flipped = jnp.linalg.cholesky(precision_matrix[..., ::-1, ::-1])
            inverse = jnp.swapaxes(flipped[..., ::-1, ::-1], -2, -1)
            scale_tril = jax.lax.linalg.triangular_solve(
                inverse,
                jnp.broadcast_to(jnp.eye(loc.shape[-1], dtype=inverse.dtype), inverse.shape),
                left_side=True,
                lower=True,
            )
        self.batch_shape = jnp.broadcast_shapes(scale_tril.shape[:-2], loc.shape[:-1])
        self.event_shape = loc.shape[-1:]
        self.loc = jnp.broadcast_to(loc, (*self.batch_shape, *self.event_shape))
        self.scale_tril = jnp.broadcast_to(scale_tril, (*self.batch_shape, *self.event_shape, *self.event_shape))
        self.mean = self.mode = self.loc
        self.variance = jnp.square(self.scale_tril).sum(-1)

    @property
    def covariance_matrix(self) -> jax.Array:
        """The covariance."""
        return self.scale_tril @ jnp.swapaxes(self.scale_tril, -2, -1)

    @property
    def precision_matrix(self) -> jax.Array:
        """The inverse of the covariance."""
        return jnp.linalg.inv(self.covariance_matrix)

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        normal = rngs.normal(self.extended_shape(sample_shape), self.loc.dtype)
        return self.loc + jnp.einsum("...ij,...j->...i", self.scale_tril, normal)

    def half_log_determinant(self) -> jax.Array:
        """Half of the logarithm of the covariance's determinant."""
        return jnp.log(jnp.diagonal(self.scale_tril, axis1=-2, axis2=-1)).sum(-1)

    def whitened(self, columns: jax.Array) -> jax.Array:
        """Columns of matrices, in units of the standard deviation in each direction."""
        batch = jnp.broadcast_shapes(columns.shape[:-2], self.batch_shape)
        scale = jnp.broadcast_to(self.scale_tril, (*batch, *self.scale_tril.shape[-2:]))
        columns = jnp.broadcast_to(columns, (*batch, *columns.shape[-2:]))
        return jax.lax.linalg.triangular_solve(scale, columns, left_side=True, lower=True)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density."""
        distance = jnp.square(self.whitened((value - self.loc)[..., None])).sum((-2, -1))
        return -0.5 * (self.loc.shape[-1] * math.log(2 * math.pi) + distance) - self.half_log_determinant()

    def entropy(self) -> jax.Array:
        """The entropy of each vector."""
        return 0.5 * self.loc.shape[-1] * (1 + math.log(2 * math.pi)) + self.half_log_determinant()

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one that is known to be of the same class."""
        spread = jnp.square(other.whitened(self.scale_tril)).sum((-2, -1))
        distance = jnp.square(other.whitened((other.loc - self.loc)[..., None])).sum((-2, -1))
        determinants = other.half_log_determinant() - self.half_log_determinant()
        return determinants + 0.5 * (spread + distance - self.loc.shape[-1])


class Independent(Distribution):
    """PyTorch's `Independent`: a distribution whose last axes are one event."""

    def __init__(self, base_distribution: Any, reinterpreted_batch_ndims: int):
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        cut = len(self.base_dist.batch_shape) - reinterpreted_batch_ndims
        self.batch_shape = self.base_dist.batch_shape[:cut]
        self.event_shape = (*self.base_dist.batch_shape[cut:], *self.base_dist.event_shape)

    @property
    def mean(self) -> jax.Array:
        """The mean."""
        return self.base_dist.mean

    @property
    def mode(self) -> jax.Array:
        """The most likely value."""
        return self.base_dist.mode

    @property
    def variance(self) -> jax.Array:
        """The variance."""
        return self.base_dist.variance

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        return self.base_dist.rsample(sample_shape, rngs=rngs)

    def sample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws without gradients."""
        return self.base_dist.sample(sample_shape, rngs=rngs)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density of each event."""
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> jax.Array:
        """The entropy of each event."""
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def divergence(self, other: Any) -> jax.Array:
        """The divergence from one of events with as many axes."""
        return sum_last(self.base_dist.kl_divergence(other.base_dist), self.reinterpreted_batch_ndims)


def sum_last(x: jax.Array, axes: int) -> jax.Array:
    """Sums over the last axes."""
    return x.sum(tuple(range(-axes, 0))) if axes else x


class MixtureSameFamily(Distribution):
    """PyTorch's `MixtureSameFamily`: draws of one of several components, which are the last axis of a batch."""

    def __init__(self, mixture_distribution: Any, component_distribution: Any):
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        self.batch_shape = component_distribution.batch_shape[:-1]
        self.event_shape = component_distribution.event_shape

    def expected(self, values: jax.Array) -> jax.Array:
        """The mean of what each component has."""
        axes = len(self.event_shape)
        return jnp.sum(self.mixture_distribution.probs[(..., *[None] * axes)] * values, axis=-1 - axes)

    @property
    def mean(self) -> jax.Array:
        """The mean."""
        return self.expected(self.component_distribution.mean)

    @property
    def variance(self) -> jax.Array:
        """The variance."""
        apart = self.component_distribution.mean - jnp.expand_dims(self.mean, -1 - len(self.event_shape))
        return self.expected(self.component_distribution.variance) + self.expected(apart**2)

    def sample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws without gradients."""
        axis = -1 - len(self.event_shape)
        which = jnp.broadcast_to(
            self.mixture_distribution.sample(sample_shape, rngs=rngs), (*sample_shape, *self.batch_shape)
        )
        draws = self.component_distribution.sample(sample_shape, rngs=rngs)
        index = which[(..., None, *[None] * len(self.event_shape))]
        return jnp.take_along_axis(draws, index, axis=axis).squeeze(axis)

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density of each event."""
        each = self.component_distribution.log_prob(jnp.expand_dims(value, -1 - len(self.event_shape)))
        return jax.nn.logsumexp(each + jax.nn.log_softmax(self.mixture_distribution.logits, axis=-1), axis=-1)


class TransformedDistribution(Distribution):
    """PyTorch's `TransformedDistribution`: what transforms of each number make of a distribution."""

    def __init__(self, base_distribution: Any, transforms: Any):
        self.base_dist = base_distribution
        self.transforms = list(transforms) if isinstance(transforms, list | tuple) else [transforms]
        self.batch_shape, self.event_shape = self.base_dist.batch_shape, self.base_dist.event_shape

    def transformed(self, x: jax.Array) -> jax.Array:
        """What becomes of draws of the base."""
        shape = x.shape
        for transform in self.transforms:
            x = transform(x)
        if x.shape != shape:
            raise ValueError(f"a transform makes {x.shape} of {shape}: give the base distribution its shape")
        return x

    def rsample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, through which the parameters get gradients."""
        return self.transformed(self.base_dist.rsample(sample_shape, rngs=rngs))

    def sample(self, sample_shape: tuple[int, ...] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws without gradients."""
        return jax.lax.stop_gradient(self.transformed(self.base_dist.sample(sample_shape, rngs=rngs)))

    def log_prob(self, value: Any) -> jax.Array:
        """The logarithm of the density of each event."""
        total = 0.0
        for transform in reversed(self.transforms):
            x = transform.inverse(value)
            total -= sum_last(transform.log_abs_det_jacobian(x, value), len(self.event_shape))
            value = x
        return total + self.base_dist.log_prob(value)
