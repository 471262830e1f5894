"""Connectionist temporal classification with PyTorch's arguments.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.ctc_loss.html
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import optax

from .loss import reduce_loss


def ctc_loss(
    log_probs: jax.Array,
    targets: jax.Array,
    input_lengths: jax.Array | Sequence[int],
    target_lengths: jax.Array | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> jax.Array:
    """CTC loss; its mean divides each loss by its target's length first. The gradient is that of the logits.

    Args:
      log_probs: (T, N, C) or (T, C), logarithms of probabilities.
      targets: (N, S) padded, or all targets one after the other, (sum of lengths,).
      input_lengths: (N,) or a number.
      target_lengths: (N,) or a number.
      blank: index of the blank.
      reduction: "mean", "sum" or "none".
      zero_infinity: whether a target too long for its input has loss 0; it is infinite otherwise.
    """
    batched = log_probs.ndim == 3
    log_probs = log_probs if batched else log_probs[:, None]
    steps, batch, _ = log_probs.shape
    input_lengths = jnp.reshape(jnp.asarray(input_lengths), batch)
    target_lengths = jnp.reshape(jnp.asarray(target_lengths), batch)
    if targets.ndim == 1:
        starts = jnp.cumsum(target_lengths) - target_lengths
        targets = targets[starts[:, None] + jnp.arange(targets.shape[0])]  # indices past the end are clamped
    beyond = jnp.arange(targets.shape[1]) >= target_lengths[:, None]
    loss = optax.ctc_loss(
        jnp.swapaxes(log_probs, 0, 1),
        (jnp.arange(steps) >= input_lengths[:, None]).astype(log_probs.dtype),
        targets,
        beyond.astype(log_probs.dtype),
        blank_id=blank,
    )
    repeats = jnp.sum((targets[:, 1:] == targets[:, :-1]) & ~beyond[:, 1:], axis=1)
    possible = input_lengths >= target_lengths + repeats
    loss = jnp.where(possible, loss, 0 if zero_infinity else jnp.inf).astype(log_probs.dtype)
    if reduction == "mean":
        return jnp.mean(loss / jnp.maximum(target_lengths, 1))
    return reduce_loss(loss if batched else loss[0], reduction)
