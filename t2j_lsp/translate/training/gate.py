"""What training code has: no planner looks at a file that has nothing of it."""

from __future__ import annotations

from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.training.data.batch_loops import PIPELINE
from t2j_lsp.translate.training.data.pipelines import DATASETS

_LOADERS = frozenset(
    f"{which}{name}"
    for which in ("", "train", "train_", "val", "val_", "valid", "valid_", "test", "test_", "eval_")
    for name in ("loader", "loaders", "dataloader", "dataloaders", "data_loader", "data_loaders")
)
"""What people call loaders, also in a file that only evaluates a model that it is given."""
LOSSES = Gate(words=frozenset({"backward", "DataLoader"}) | _LOADERS)
"""What makes loops training loops, or those of an evaluation, so that they tell what is a model or a batch."""
TRAINING = Gate(
    words=frozenset({"backward", "param_groups", "requires_grad", "requires_grad_"}) | _LOADERS,
    names=(names_with(Trait.FORWARD), names_with(Trait.AUTOCAST)),
    libraries=("torch.optim.", PIPELINE, *DATASETS),
    objects=frozenset({"optimizer", "scheduler", "scaler", "loader", "dataset", "image dataset"}),
)
"""Anything that a planner of training code may plan. Such words are used of it, whatever is known of their owner."""
