"""Loaders load in the process of the program: a contained program starts no others."""

from __future__ import annotations

import functools
from typing import Any

from torch.utils.data import DataLoader

_OF_PROCESSES = (
    "num_workers", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context", "prefetch_factor",
    "persistent_workers", "pin_memory_device",
)  # fmt: skip
_BEFORE_WORKERS = 5
"""Positional parameters of a loader in front of ``num_workers``."""
_installed: list[Any] = []


def install() -> None:
    """Replaces the constructor of loaders, once."""
    if _installed:
        return
    original = DataLoader.__init__
    _installed.append(original)

    @functools.wraps(original)
    def load_here(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
        kept = {name: value for name, value in kwargs.items() if name not in _OF_PROCESSES}
        original(self, dataset, *args[:_BEFORE_WORKERS], **kept)

    DataLoader.__init__ = load_here  # type: ignore[method-assign]
