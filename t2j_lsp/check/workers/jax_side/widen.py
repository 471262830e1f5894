"""Lets JAX functions that compute in float32 whatever their inputs compute in float64, when a check does.

``jax.nn.dot_product_attention`` takes its softmax in float32, which is right for half precision, but would leave
attention undecided: its error of 1e-7 is larger than what tells a wrong epsilon.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np
from jax import dtypes

_HOMES = ("jax._src.nn.functions",)


class _Numpy(ModuleType):
    """numpy, but for ``float32``, which is float64 while 64-bit types are enabled."""

    def __getattr__(self, name: str) -> Any:
        if name == "float32" and dtypes.canonicalize_dtype(np.float64) == np.float64:
            return np.float64
        return getattr(np, name)


def install() -> None:
    """Replaces ``np`` in the modules concerned. Where a JAX version has no such module, nothing is replaced."""
    for home in _HOMES:
        try:
            module = importlib.import_module(home)
        except ImportError:
            continue
        if getattr(module, "np", None) is np:
            setattr(module, "np", _Numpy("numpy"))  # noqa: B010 - mypy knows no such attribute
