"""What a model computes: one record for each framework, and how far two records are apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray[Any, Any]]

TOLERANCE = 1e-9
"""Of an array's scale, in float64: right translations agree to about 1e-14, mistakes are far above."""

_SMALL = 1e-4
"""Arrays this much smaller than the largest of their kind are measured on its scale: the gradient of a bias before a
batch norm is zero in exact arithmetic, and rounding noise in practice."""


@dataclass
class Observed:
    """One forward pass in eval mode; one forward and backward pass in train mode and the buffers after it.

    Gradients are of ``sum(output * c)`` for fixed random ``c``, by PyTorch's names and in its layouts.
    """

    eval_outputs: Arrays
    train_outputs: Arrays
    parameter_gradients: Arrays
    input_gradient: Arrays
    buffers: Arrays


KINDS: tuple[str, ...] = ("eval_outputs", "train_outputs", "parameter_gradients", "input_gradient", "buffers")


@dataclass(frozen=True)
class Distance:
    """The largest difference among arrays of one kind, relative to their scale, and where it is."""

    error: float
    where: str

    @property
    def equal(self) -> bool:
        return self.error <= TOLERANCE


def distance(want: Mapping[str, np.ndarray[Any, Any]], got: Mapping[str, np.ndarray[Any, Any]]) -> Distance:
    """How far ``got`` is from ``want``; infinitely where names, shapes or NaNs differ."""
    if set(want) != set(got):
        names = sorted(set(want) ^ set(got))
        return Distance(float("inf"), f"only on one side: {', '.join(names[:4])}{' ...' if names[4:] else ''}")
    largest = max((float(np.abs(a).max(initial=0.0)) for a in want.values()), default=0.0)
    worst = Distance(0.0, "")
    for name, expected in want.items():
        actual = got[name]
        if actual.shape != expected.shape:
            return Distance(float("inf"), f"{name}: shape {actual.shape}, PyTorch has {expected.shape}")
        scale = max(float(np.abs(expected).max(initial=0.0)), _SMALL * largest) or 1.0
        error = float(np.abs(actual - expected).max(initial=0.0)) / scale
        if np.isnan(error):
            return Distance(float("inf"), f"{name}: NaN")
        if error > worst.error:
            worst = Distance(error, name)
    return worst


def distances(want: Observed, got: Observed) -> dict[str, Distance]:
    """`distance` for every kind of array."""
    return {kind: distance(getattr(want, kind), getattr(got, kind)) for kind in KINDS}
