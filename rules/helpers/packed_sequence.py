"""Sequences of unequal lengths: padding a list, and packed sequences as a padded array with its lengths.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pack_padded_sequence.html
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp


class PackedSequence(NamedTuple):
    """Sequences of unequal lengths: `padded` is (T, N, ...), `lengths` is (N,).

    PyTorch stores the steps without the padding, which has no fixed shape; recurrent layers give the same results.
    """

    padded: jax.Array
    lengths: jax.Array


def pad_sequence(
    sequences: Sequence[jax.Array],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> jax.Array:
    """Stacks sequences (L, ...) padded to the longest: (T, N, ...), or (N, T, ...) with `batch_first`."""
    longest = max(len(sequence) for sequence in sequences)
    padded = []
    for sequence in sequences:
        missing = longest - len(sequence)
        ends = (0, missing) if padding_side == "right" else (missing, 0)
        widths = [ends] + [(0, 0)] * (sequence.ndim - 1)
        padded.append(jnp.pad(sequence, widths, constant_values=padding_value))
    return jnp.stack(padded, axis=0 if batch_first else 1)


def pack_padded_sequence(
    x: jax.Array, lengths: jax.Array | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs x (T, N, ...), or (N, T, ...) with `batch_first`; the order of the batch is kept in any case."""
    return PackedSequence(jnp.swapaxes(x, 0, 1) if batch_first else x, jnp.asarray(lengths))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[jax.Array, jax.Array]:
    """The padded array, (T, N, ...) or (N, T, ...), and the lengths.

    T is `total_length`, or that of the array that was packed. PyTorch takes the longest length, which is the same
    unless every sequence was padded; its shape would depend on data.
    """
    x, lengths = sequence
    missing = (x.shape[0] if total_length is None else total_length) - x.shape[0]
    x = jnp.pad(x, [(0, max(missing, 0))] + [(0, 0)] * (x.ndim - 1))[: x.shape[0] + missing]
    valid = jnp.arange(x.shape[0])[:, None] < lengths
    x = jnp.where(valid.reshape(*valid.shape, *[1] * (x.ndim - 2)), x, padding_value)
    return jnp.swapaxes(x, 0, 1) if batch_first else x, lengths
