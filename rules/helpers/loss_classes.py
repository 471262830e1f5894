"""Losses of class scores, with PyTorch's class axis, ignored labels, weights, clamps and gradients.

Source: https://docs.pytorch.org/docs/stable/nn.functional.html#loss-functions
"""

import jax
import jax.numpy as jnp
import optax

from .loss import reduce_loss


def cross_entropy(
    logits: jax.Array,
    target: jax.Array,
    weight: jax.Array | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> jax.Array:
    """Cross entropy of `logits` (N, C, ...) or (C,), with the classes on axis 1.

    Args:
      logits: unnormalised scores.
      target: class indices (N, ...), or probabilities of the shape of `logits`.
      weight: for each class, (C,). The mean over indices divides by the sum of their weights.
      ignore_index: targets of this value add nothing, and do not count in the mean.
      reduction: "mean", "sum" or "none".
      label_smoothing: this share of the target is spread evenly over the classes.
    """
    axis = min(logits.ndim - 1, 1)
    if target.shape == logits.shape:
        if label_smoothing > 0:
            target = (1 - label_smoothing) * target + label_smoothing / logits.shape[axis]
        if weight is not None:
            target = target * weight.reshape(-1, *[1] * (logits.ndim - 1 - axis))
        return reduce_loss(optax.softmax_cross_entropy(logits, target, axis=axis), reduction)
    if weight is not None or label_smoothing > 0:
        log_probs = jax.nn.log_softmax(logits, axis=axis)
        return nll_loss(log_probs, target, weight, ignore_index, reduction, label_smoothing)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, target, axis=axis)
    if reduction == "none":
        return jnp.where(target != ignore_index, losses, 0)
    return {"mean": jnp.mean, "sum": jnp.sum}[reduction](losses, where=target != ignore_index)


def nll_loss(
    log_probs: jax.Array,
    target: jax.Array,
    weight: jax.Array | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> jax.Array:
    """Negative log likelihood of the classes `target` (N, ...) under `log_probs` (N, C, ...); see `cross_entropy`."""
    axis = min(log_probs.ndim - 1, 1)
    if weight is not None:
        log_probs = log_probs * weight.reshape(-1, *[1] * (log_probs.ndim - 1 - axis))
    own = jnp.take_along_axis(log_probs, jnp.expand_dims(target, axis), axis)
    loss = -own.squeeze(axis)
    if label_smoothing > 0:
        loss = (1 - label_smoothing) * loss - label_smoothing * jnp.mean(log_probs, axis)
    if reduction == "none":
        return jnp.where(target != ignore_index, loss, 0)
    if reduction == "mean" and weight is not None:
        loss = jnp.where(target != ignore_index, loss, 0)
        return jnp.sum(loss) / jnp.sum(weight[target], where=target != ignore_index)
    return {"mean": jnp.mean, "sum": jnp.sum}[reduction](loss, where=target != ignore_index)


def binary_cross_entropy(
    probs: jax.Array, target: jax.Array, weight: jax.Array | None = None, reduction: str = "mean"
) -> jax.Array:
    """Binary cross entropy of probabilities; as in PyTorch logarithms are at least -100 and gradients stay finite."""

    @jax.custom_jvp
    def elementwise(p: jax.Array, t: jax.Array) -> jax.Array:
        log_p, log_not = jnp.maximum(jnp.log(p), -100), jnp.maximum(jnp.log1p(-p), -100)
        return (t - 1) * log_not - t * log_p

    smallest = 9.99999996e-13  # PyTorch has 1e-12 as a float32
    elementwise.defjvps(
        lambda dp, _, p, t: dp * (p - t) / jnp.maximum((1 - p) * p, smallest),
        lambda dt, _, p, t: dt * (jnp.log1p(-p) - jnp.log(p)),
    )
    loss = elementwise(probs, target)
    return reduce_loss(loss if weight is None else loss * weight, reduction)


def binary_cross_entropy_with_logits(
    logits: jax.Array,
    target: jax.Array,
    weight: jax.Array | None = None,
    reduction: str = "mean",
    pos_weight: jax.Array | None = None,
) -> jax.Array:
    """Binary cross entropy of logits; `pos_weight` scales the part of positive targets."""
    positive = 1.0 if pos_weight is None else 1 + (pos_weight - 1) * target
    loss = (1 - target) * logits - positive * jax.nn.log_sigmoid(logits)
    return reduce_loss(loss if weight is None else loss * weight, reduction)


def soft_margin_loss(x: jax.Array, target: jax.Array, reduction: str = "mean") -> jax.Array:
    """log(1 + exp(-target * x)) for targets of 1 and -1."""
    return reduce_loss(jnp.log1p(jnp.exp(-target * x)), reduction)


def multi_margin_loss(
    x: jax.Array,
    target: jax.Array,
    p: int = 1,
    margin: float = 1.0,
    weight: jax.Array | None = None,
    reduction: str = "mean",
) -> jax.Array:
    """Hinge loss of scores (N, C) or (C,) and class indices: what exceeds the margin, averaged over the classes."""
    x = jnp.atleast_1d(x)
    target = target.reshape(x.shape[:-1])
    own = jnp.take_along_axis(x, target[..., None], axis=-1)
    loss = jax.nn.relu(margin - own + x) ** p
    if weight is not None:
        loss = loss * weight[target][..., None]
    others = jnp.arange(x.shape[-1]) != target[..., None]
    return reduce_loss(jnp.mean(jnp.where(others, loss, 0), axis=-1), reduction)


def multilabel_margin_loss(x: jax.Array, target: jax.Array, reduction: str = "mean") -> jax.Array:
    """Hinge loss of scores (N, C) or (C,) between the classes that `target` lists, up to its first -1, and others."""
    x, target = jnp.atleast_1d(x), jnp.atleast_1d(target)
    listed = jnp.cumprod(target >= 0, axis=-1).astype(bool)
    index = jnp.where(listed, target, 0)
    positive = jnp.any((index[..., None] == jnp.arange(x.shape[-1])) & listed[..., None], axis=-2)
    margins = jax.nn.relu(1 - jnp.take_along_axis(x, index, axis=-1)[..., None] + x[..., None, :])
    pairs = listed[..., None] & ~positive[..., None, :]
    return reduce_loss(jnp.sum(jnp.where(pairs, margins, 0), axis=(-2, -1)) / x.shape[-1], reduction)


def multilabel_soft_margin_loss(
    x: jax.Array, target: jax.Array, weight: jax.Array | None = None, reduction: str = "mean"
) -> jax.Array:
    """The mean over the classes, the last axis, of the binary cross entropy of logits."""
    loss = binary_cross_entropy_with_logits(x, target, weight, reduction="none")
    return reduce_loss(jnp.mean(loss, axis=-1), reduction)
