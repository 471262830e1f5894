"""Sequences that are searched: of one that isn't sorted, what ``searchsorted`` and ``bucketize`` find is left open.

While arguments are tried, such a search raises, so that nobody is accused of what it gives.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

UNSORTED = "the sequence that is searched isn't sorted"


@contextlib.contextmanager
def sorted_sequences() -> Iterator[None]:
    """Have searches of sequences that aren't sorted raise."""
    kept = {name: getattr(torch, name) for name in ("searchsorted", "bucketize")}

    def searchsorted(
        sorted_sequence: torch.Tensor, *args: Any, sorter: torch.Tensor | None = None, **kwargs: Any
    ) -> Any:
        if sorter is None:
            _refuse_unsorted(sorted_sequence)
        return kept["searchsorted"](sorted_sequence, *args, sorter=sorter, **kwargs)

    def bucketize(input: Any, boundaries: torch.Tensor, **kwargs: Any) -> Any:
        _refuse_unsorted(boundaries)
        return kept["bucketize"](input, boundaries, **kwargs)

    for name, replacement in (("searchsorted", searchsorted), ("bucketize", bucketize)):
        setattr(torch, name, replacement)
    try:
        yield
    finally:
        for name, function in kept.items():
            setattr(torch, name, function)


def _refuse_unsorted(sequence: torch.Tensor) -> None:
    if sequence.numel() and bool((sequence.diff(dim=-1) < 0).any()):
        raise ValueError(UNSORTED)
