"""The time in which an object is to have its verdict, and what is left out to keep to it.

What decides is never left out: the runs in float64 in evaluation and in training mode, every gradient, the buffers, and
the optimizer's steps. What repeats these in another way goes, the least telling first.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable

SHARE = 0.3
"""Of the time limit: what repeats is begun only within it."""
TRAINING, NARROW, WIDER, INITIAL, OWN_TRAINING = 5.0, 3.0, 2.0, 2.0, 6.0
"""How long parts of a check take beside the first call, which is mostly its compilation: training, the forward passes
in float32, a call without ``jit``, initial values, the training with the file's own optimizer."""


class TimeBudget:
    """Seconds from now on; ``left_out`` is what there was no time for."""

    def __init__(self, seconds: float | None) -> None:
        self.end = time.monotonic() + (math.inf if seconds is None else seconds)
        self.left_out: list[str] = []
        self.smaller: str | None = None
        """Which inputs were made smaller, from what to what."""

    @property
    def left(self) -> float | None:
        """Seconds that are left; None for no limit."""
        return None if self.end == math.inf else max(0.0, self.end - time.monotonic())

    def affords(self, what: str, seconds: float) -> bool:
        """Whether there is time for something; if not, it is noted as left out."""
        if time.monotonic() + seconds <= self.end:
            return True
        self.left_out.append(what)
        return False

    def said(self) -> str | None:
        """What a report says of it; None where all was done as it was asked for."""
        smaller = [f"with smaller inputs ({self.smaller})"] if self.smaller else []
        left_out = [f"left out, to be in time: {', '.join(_shown(self.left_out))}"] if self.left_out else []
        return "; ".join([*smaller, *left_out]) or None


def _shown(names: Iterable[str]) -> list[str]:
    """The names of observations as words, each once: ``eval output (other values 2)`` is ``other values``."""
    plain = (re.sub(r"^.*\((.*)\)$", r"\1", name) for name in names)
    return list(dict.fromkeys(re.sub(r"(other values) \d+$", r"\1", name) for name in plain))
