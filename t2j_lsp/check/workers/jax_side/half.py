"""Notices where a program turns values into half precision."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from jax import lax

from t2j_lsp.check.messages import HalfCast

HALF = ("float16", "bfloat16")


@contextmanager
def watched() -> Iterator[list[HalfCast]]:
    """The casts of wider floats and of integers to half precision while the context lasts, with their frames."""
    casts: list[HalfCast] = []
    cast = lax.convert_element_type_p
    original = cast.bind

    def bind(*args: Any, **parameters: Any) -> Any:
        name = np.dtype(parameters["new_dtype"]).name
        if name in HALF and not casts:
            frames = [(f.filename, f.lineno or 0, f.name) for f in traceback.extract_stack()]
            casts.append(HalfCast(name, frames))
        return original(*args, **parameters)

    cast.bind = bind
    try:
        yield casts
    finally:
        del cast.bind
