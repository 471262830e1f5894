"""``torch.utils.data``: the data pipeline stays in PyTorch, and its batches become JAX arrays where a loop takes them.

Loaders with worker processes and transforms have no counterpart in JAX; JAX programs use PyTorch's.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.record import keep

BATCHES = "The data pipeline stays in PyTorch; loops over it make arrays of each batch."
KEPT = "PyTorch's data pipeline stays as it is; the tensors it yields become arrays where they are used."

keep("torch.utils.data.DataLoader", BATCHES)
for name in ("Dataset", "IterableDataset", "TensorDataset", "ConcatDataset", "ChainDataset", "Subset", "StackDataset"):
    keep(f"torch.utils.data.{name}", KEPT)
keep("torch.utils.data.random_split", KEPT, result="datasets")
for name in ("default_collate", "get_worker_info"):
    keep(f"torch.utils.data.{name}", KEPT)
for name in ("", "Batch", "Random", "Sequential", "SubsetRandom", "WeightedRandom", "distributed.Distributed"):
    keep(f"torch.utils.data.{name}Sampler", KEPT)
keep("torch.utils.data.*", KEPT)

trait(Trait.STACKS_ROWS, "torch.utils.data.DataLoader")
trait(Trait.ROWS, "torch.utils.data.TensorDataset")
trait(Trait.SOME_ROWS, "torch.utils.data.random_split")
trait(Trait.SHUFFLES, "torch.utils.data.DataLoader")
trait(Trait.KEPT_DRAW, "torch.utils.data.random_split")
for name in ("Random", "SubsetRandom", "WeightedRandom"):
    trait(Trait.KEPT_DRAW, f"torch.utils.data.{name}Sampler")
