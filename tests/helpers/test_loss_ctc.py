"""CTC against PyTorch: unequal lengths, repeated labels, joined targets, targets too long for their input."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from t2j_lsp.rules.helpers.loss_ctc import ctc_loss
from tests.helpers.compare import array, same_function

TARGETS = np.array([[1, 1, 2], [3, 2, 2], [2, 0, 0], [1, 2, 3]])  # (4, 3)
LENGTHS = ((7, 6, 5, 4), (3, 2, 0, 3))


def compare(targets: np.ndarray, lengths: Any = LENGTHS, batch: int = 4, **options: Any) -> None:
    """Compares gradients with respect to the logits."""
    same_function(
        lambda x: ctc_loss(jax.nn.log_softmax(x), jnp.asarray(targets), *lengths, **options),
        lambda x: F.ctc_loss(F.log_softmax(x, -1), torch.from_numpy(targets), *lengths, **options),
        array(7, batch, 5),
        jit=True,
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_padded_targets(reduction: str) -> None:
    compare(TARGETS, reduction=reduction)


def test_joined_targets_and_another_blank() -> None:
    joined = np.concatenate([row[:length] for row, length in zip(TARGETS, LENGTHS[1], strict=True)])
    compare(joined, blank=4)


def test_impossible_targets() -> None:
    lengths = ((7, 1, 5, 2), (3, 2, 1, 3))
    compare(TARGETS, lengths, zero_infinity=True)
    log_probs = jax.nn.log_softmax(jnp.asarray(array(7, 4, 5)))
    loss = ctc_loss(log_probs, jnp.asarray(TARGETS), *lengths, reduction="none")
    np.testing.assert_array_equal(np.isinf(loss), [False, True, False, True])


def test_without_a_batch() -> None:
    log_probs, target = array(7, 5), np.array([1, 1, 3])
    same_function(
        lambda x: ctc_loss(jax.nn.log_softmax(x), jnp.asarray(target), jnp.array(7), jnp.array(3), reduction="none"),
        lambda x: F.ctc_loss(
            F.log_softmax(x, -1), torch.from_numpy(target), torch.tensor(7), torch.tensor(3), reduction="none"
        ),
        log_probs,
        jit=True,
    )
