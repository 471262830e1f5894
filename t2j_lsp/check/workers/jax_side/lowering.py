"""Lowering programs in contexts of MLIR that are used again, as programs of a check are many and small.

JAX makes a context for each program that it lowers, which loads all dialects anew: 3 to 4 ms, up to a tenth of what a
small program takes to be traced, lowered and compiled. Nothing of a program depends on it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from jax.interpreters import mlir

USES = 200
"""Programs of one context: it keeps their types, attributes and locations."""


class Contexts:
    """Makes contexts, each for a number of programs of one thread."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._kept = threading.local()

    def __call__(self) -> Any:
        kept = self._kept
        if getattr(kept, "left", 0) == 0:
            kept.context, kept.left = self._make(), USES
        kept.left -= 1
        return kept.context


def install() -> None:
    """Replaces what makes contexts, once. Where a JAX version has no such function, nothing is replaced."""
    try:
        from jax._src.interpreters import mlir as internal
    except ImportError:
        return
    make = getattr(internal, "make_ir_context", None)
    if make is mlir.make_ir_context:
        internal.make_ir_context = Contexts(make)
