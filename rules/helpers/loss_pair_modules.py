"""Modules of similarities, distances and their losses, with PyTorch's constructors.

Source: https://docs.pytorch.org/docs/stable/nn.html#distance-functions
"""

from collections.abc import Callable

import jax
from flax import nnx

from .loss_modules import Loss
from .loss_pairs import (
    cosine_embedding_loss,
    cosine_similarity,
    hinge_embedding_loss,
    margin_ranking_loss,
    pairwise_distance,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)


class CosineSimilarity(nnx.Module):
    """PyTorch's `nn.CosineSimilarity`."""

    def __init__(self, dim: int = 1, eps: float = 1e-8, *, rngs: nnx.Rngs | None = None):
        self.dim = dim
        self.eps = eps

    def __call__(self, x1: jax.Array, x2: jax.Array) -> jax.Array:
        return cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(nnx.Module):
    """PyTorch's `nn.PairwiseDistance`."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False, *, rngs: nnx.Rngs | None = None):
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def __call__(self, x1: jax.Array, x2: jax.Array) -> jax.Array:
        return pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineEmbeddingLoss(Loss):
    """PyTorch's `nn.CosineEmbeddingLoss`."""

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean", rngs: nnx.Rngs | None = None):
        super().__init__(reduction=reduction)
        self.margin = margin

    def __call__(self, x1: jax.Array, x2: jax.Array, target: jax.Array) -> jax.Array:
        return cosine_embedding_loss(x1, x2, target, self.margin, self.reduction)


class MarginRankingLoss(Loss):
    """PyTorch's `nn.MarginRankingLoss`."""

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean", rngs: nnx.Rngs | None = None):
        super().__init__(reduction=reduction)
        self.margin = margin

    def __call__(self, x1: jax.Array, x2: jax.Array, target: jax.Array) -> jax.Array:
        return margin_ranking_loss(x1, x2, target, self.margin, self.reduction)


class HingeEmbeddingLoss(Loss):
    """PyTorch's `nn.HingeEmbeddingLoss`."""

    def __init__(self, margin: float = 1.0, *, reduction: str = "mean", rngs: nnx.Rngs | None = None):
        super().__init__(reduction=reduction)
        self.margin = margin

    def __call__(self, x: jax.Array, target: jax.Array) -> jax.Array:
        return hinge_embedding_loss(x, target, self.margin, self.reduction)


class TripletMarginLoss(Loss):
    """PyTorch's `nn.TripletMarginLoss`."""

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        *,
        reduction: str = "mean",
        rngs: nnx.Rngs | None = None,
    ):
        super().__init__(reduction=reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def __call__(self, anchor: jax.Array, positive: jax.Array, negative: jax.Array) -> jax.Array:
        options = (self.margin, self.p, self.eps, self.swap, self.reduction)
        return triplet_margin_loss(anchor, positive, negative, *options)


class TripletMarginWithDistanceLoss(Loss):
    """PyTorch's `nn.TripletMarginWithDistanceLoss`."""

    def __init__(
        self,
        *,
        distance_function: Callable[[jax.Array, jax.Array], jax.Array] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
        rngs: nnx.Rngs | None = None,
    ):
        super().__init__(reduction=reduction)
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap

    def __call__(self, anchor: jax.Array, positive: jax.Array, negative: jax.Array) -> jax.Array:
        return triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
