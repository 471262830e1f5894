"""Losses of numbers and distributions, with PyTorch's reductions and gradients.

Source: https://docs.pytorch.org/docs/stable/nn.functional.html#loss-functions
"""

import math

import jax
import jax.numpy as jnp
import optax

from .math import absolute


def reduce_loss(x: jax.Array, reduction: str) -> jax.Array:
    """The mean or the sum of a loss, or the loss itself for "none"."""
    return x if reduction == "none" else {"mean": jnp.mean, "sum": jnp.sum}[reduction](x)


def weighted_loss(loss: jax.Array, weight: jax.Array | None, reduction: str) -> jax.Array:
    """`reduce_loss` of a loss times a weight for each element; the mean divides by the sum of the weights."""
    if weight is None:
        return reduce_loss(loss, reduction)
    if reduction == "mean":
        return jnp.sum(loss * weight) / jnp.sum(weight)
    return reduce_loss(loss * weight, reduction)


def mse_loss(x: jax.Array, target: jax.Array, reduction: str = "mean", weight: jax.Array | None = None) -> jax.Array:
    """The squared difference."""
    return weighted_loss(jnp.square(x - target), weight, reduction)


def l1_loss(x: jax.Array, target: jax.Array, reduction: str = "mean", weight: jax.Array | None = None) -> jax.Array:
    """The absolute difference, with gradient 0 where both are equal."""
    return weighted_loss(absolute(x - target), weight, reduction)


def smooth_l1_loss(x: jax.Array, target: jax.Array, reduction: str = "mean", beta: float = 1.0) -> jax.Array:
    """The absolute difference, less beta / 2, and below `beta` its square / (2 * beta)."""
    if beta == 1:
        return reduce_loss(optax.huber_loss(x, target), reduction)
    if beta == 0:
        return reduce_loss(absolute(x - target), reduction)
    return reduce_loss(optax.huber_loss(x, target, delta=beta) / beta, reduction)


def huber_loss(
    x: jax.Array, target: jax.Array, reduction: str = "mean", delta: float = 1.0, weight: jax.Array | None = None
) -> jax.Array:
    """Half the squared difference, and above `delta` linear; with a `weight`, too, the mean is over the elements."""
    loss = optax.huber_loss(x, target, delta=delta)
    return reduce_loss(loss if weight is None else loss * weight, reduction)


def kl_div(log_probs: jax.Array, target: jax.Array, reduction: str = "mean", log_target: bool = False) -> jax.Array:
    """Kullback-Leibler divergence, target * (log(target) - log_probs); "mean" is over all elements, not the batch."""
    if log_target:
        loss = jnp.exp(target) * (target - log_probs)
    else:
        loss = jax.scipy.special.xlogy(target, target) - target * log_probs
    if reduction == "batchmean":
        return jnp.sum(loss) / (log_probs.shape[0] if log_probs.ndim else 1)
    return reduce_loss(loss, reduction)


def gaussian_nll_loss(
    x: jax.Array,
    target: jax.Array,
    var: jax.Array | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> jax.Array:
    """Negative log likelihood of `target` under a normal distribution of mean `x` and variance `var`, at least `eps`.

    `var` has the shape of `x`, or lacks its last axis or has 1 there. It keeps its gradient below `eps`.
    """
    var = jnp.asarray(var, x.dtype)
    if var.shape == x.shape[:-1] != x.shape and var.ndim > 0:
        var = var[..., None]
    var = var + jax.lax.stop_gradient(jnp.maximum(var, eps) - var)
    loss = 0.5 * (jnp.log(var) + jnp.square(x - target) / var)
    return reduce_loss(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def poisson_nll_loss(
    x: jax.Array,
    target: jax.Array,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> jax.Array:
    """Negative log likelihood of counts `target` under a Poisson distribution of rate exp(x), or x.

    `full` adds Stirling's approximation of log(target!) where the target is above 1.
    """
    loss = jnp.exp(x) - target * x if log_input else x - target * jnp.log(x + eps)
    if full:
        counts = jnp.where(target > 1, target, 2)
        stirling = counts * jnp.log(counts) - counts + 0.5 * jnp.log(2 * math.pi * counts)
        loss = loss + jnp.where(target > 1, stirling, 0)
    return reduce_loss(loss, reduction)
