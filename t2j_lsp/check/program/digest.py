"""What crosses of a large array that is only compared: evenly spread elements, and inner products with random vectors.

The samples show where two arrays part; the products notice a change of any part of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from t2j_lsp.check.protocol import Array, NdArray, RawArray

LIMIT = 100_000
"""Elements from which an array is digested."""
SAMPLES = 20_000
PRODUCTS = 3


def digest(array: Array | None) -> Any:
    """The array itself if it is small, else ``{"sampled", "products"}``."""
    if not isinstance(array, np.ndarray) or array.size <= LIMIT or array.dtype.kind not in "fc":
        return array
    flat: NdArray = array.reshape(-1)
    wide = flat.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    rng = np.random.default_rng(array.size)
    products = [wide @ (rng.random(array.size, np.float32) - 0.5) for _ in range(PRODUCTS)]
    return {
        "sampled": flat[np.linspace(0, flat.size - 1, SAMPLES).astype(np.int64)],
        "products": np.asarray(products).astype(array.dtype),
    }


def compact(array: Array | None) -> Any:
    """The same values in half the bytes, where float32 holds them exactly."""
    if array is None or isinstance(array, RawArray) or array.dtype != np.float64:
        return array
    narrow = array.astype(np.float32)
    return narrow if np.array_equal(narrow, array, equal_nan=True) else array
