"""Similarities and distances of vectors, and losses of pairs and triplets of them, with PyTorch's gradients.

Source: https://docs.pytorch.org/docs/stable/nn.functional.html#distance-functions
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from .loss import reduce_loss
from .math import clamp, euclidean_norm, vector_norm


def cosine_similarity(x1: jax.Array, x2: jax.Array, dim: int = 1, eps: float = 1e-8) -> jax.Array:
    """Cosine of the angle between vectors along `dim`; norms are at least `eps`, a zero vector has gradient 0."""

    def norm(x: jax.Array) -> jax.Array:
        length = euclidean_norm(x, axis=dim, keepdims=True)
        return length + jax.lax.stop_gradient(jnp.maximum(length, eps) - length)

    x1, x2 = jnp.broadcast_arrays(x1, x2)
    return jnp.sum(x1 / norm(x1) * (x2 / norm(x2)), axis=dim)


def pairwise_distance(
    x1: jax.Array, x2: jax.Array, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> jax.Array:
    """The p-norm of x1 - x2 + eps over the last axis."""
    return vector_norm(x1 - x2 + eps, p, axis=-1, keepdims=keepdim)


def cosine_embedding_loss(
    x1: jax.Array, x2: jax.Array, target: jax.Array, margin: float = 0.0, reduction: str = "mean"
) -> jax.Array:
    """1 - cosine where the target is 1, and what the cosine exceeds `margin` by where it is -1."""
    eps = 9.999999960041972e-13  # PyTorch has 1e-12 as a float32
    squares = (jnp.sum(x1 * x1, axis=-1) + eps) * (jnp.sum(x2 * x2, axis=-1) + eps)
    cosine = jnp.sum(x1 * x2, axis=-1) / jnp.sqrt(squares)
    positive = jnp.where(target == 1, 1 - cosine, 0)
    negative = jnp.where(target == -1, clamp(cosine - margin, min=0), 0)
    return reduce_loss(positive + negative, reduction)


def margin_ranking_loss(
    x1: jax.Array, x2: jax.Array, target: jax.Array, margin: float = 0.0, reduction: str = "mean"
) -> jax.Array:
    """What target * (x1 - x2) falls short of `margin` by, for targets of 1 and -1."""
    return reduce_loss(clamp(margin - target * (x1 - x2), min=0), reduction)


def hinge_embedding_loss(x: jax.Array, target: jax.Array, margin: float = 1.0, reduction: str = "mean") -> jax.Array:
    """The input where the target is 1, and what it falls short of `margin` by where it is -1."""
    positive = jnp.where(target != -1, x, 0)
    negative = jnp.where(target != 1, clamp(margin - x, min=0), 0)
    return reduce_loss(positive + negative, reduction)


def triplet_margin_with_distance_loss(
    anchor: jax.Array,
    positive: jax.Array,
    negative: jax.Array,
    *,
    distance_function: Callable[[jax.Array, jax.Array], jax.Array] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> jax.Array:
    """What the negative's distance from the anchor falls short of the positive's plus `margin` by.

    With `swap` the negative's distance from the positive counts if it is the smaller one.
    """
    distance = pairwise_distance if distance_function is None else distance_function
    away = distance(anchor, negative)
    if swap:
        away = jnp.minimum(away, distance(positive, negative))
    return reduce_loss(clamp(margin + distance(anchor, positive) - away, min=0), reduction)


def triplet_margin_loss(
    anchor: jax.Array,
    positive: jax.Array,
    negative: jax.Array,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> jax.Array:
    """`triplet_margin_with_distance_loss` of the p-norm over the last axis."""
    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=lambda x, y: pairwise_distance(x, y, p, eps),
        margin=margin,
        swap=swap,
        reduction=reduction,
    )
