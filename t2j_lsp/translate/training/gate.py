"""What training code has: no planner looks at a file that has nothing of it."""

from __future__ import annotations

from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.rule.library import Trait, names_with

from .data import DATASETS, PIPELINE

LOSSES = Gate(words=frozenset({"backward", "DataLoader"}))
"""What makes loops training loops, or those of an evaluation, so that they tell what is a model or a batch."""
TRAINING = Gate(
    words=frozenset({"backward", "param_groups", "requires_grad", "requires_grad_"}),
    names=(names_with(Trait.FORWARD), names_with(Trait.AUTOCAST)),
    libraries=("torch.optim.", PIPELINE, *DATASETS),
    objects=frozenset({"optimizer", "scheduler", "scaler", "loader", "dataset", "image dataset"}),
)
"""Anything that a planner of training code may plan. Such words are used of it, whatever is known of their owner."""
