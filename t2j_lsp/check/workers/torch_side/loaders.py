"""Loaders load in the process of the program: a contained program starts no others."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from torch.utils.data import DataLoader

_OF_PROCESSES = (
    "num_workers", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context", "prefetch_factor",
    "persistent_workers", "pin_memory_device",
)  # fmt: skip
_BEFORE_WORKERS = 5
"""Positional parameters of a loader in front of ``num_workers``."""


@contextmanager
def loading_here() -> Iterator[None]:
    """Loaders that are made in this context start no processes."""
    original = DataLoader.__init__

    @functools.wraps(original)
    def load_here(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
        kept = {name: value for name, value in kwargs.items() if name not in _OF_PROCESSES}
        original(self, dataset, *args[:_BEFORE_WORKERS], **kept)

    with mock.patch.object(DataLoader, "__init__", load_here):
        yield
