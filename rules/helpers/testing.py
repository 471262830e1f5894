"""Comparisons of tests with PyTorch's tolerances."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

# Relative and absolute tolerance by dtype, as torch.testing has them; other dtypes are compared exactly.
TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_dtype: bool = True,
    msg: Any = None,
) -> None:
    """Raises AssertionError unless shapes, dtypes and values agree, as `torch.testing.assert_close`.

    Lists, tuples and dicts are compared item by item. The tolerances are the looser of the two dtypes'.
    """
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol must both be given, or neither")
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        assert actual.keys() == expected.keys(), msg or f"keys differ: {set(actual) ^ set(expected)}"
        pairs = [(actual[key], expected[key]) for key in actual]
    elif isinstance(actual, list | tuple) and isinstance(expected, list | tuple):
        assert len(actual) == len(expected), msg or f"lengths differ: {len(actual)} and {len(expected)}"
        pairs = list(zip(actual, expected, strict=True))
    else:
        a, b = (x if isinstance(x, bool | int | float | complex) else jnp.asarray(x) for x in (actual, expected))
        a, b = np.asarray(a), np.asarray(b)
        if rtol is None or atol is None:
            one, other = (TOLERANCES.get(x.dtype.name, (0.0, 0.0)) for x in (a, b))
            rtol, atol = max(one[0], other[0]), max(one[1], other[1])
        if check_dtype:
            assert a.dtype == b.dtype, msg or f"dtypes differ: {a.dtype} and {b.dtype}"
        assert a.shape == b.shape, msg or f"shapes differ: {a.shape} and {b.shape}"
        wide = "complex128" if "c" in (a.dtype.kind, b.dtype.kind) else "float64"
        if {a.dtype.kind, b.dtype.kind} - set("biu"):
            a, b = a.astype(wide), b.astype(wide)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan, err_msg=str(msg or ""))
        return
    for x, y in pairs:
        assert_close(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=check_dtype, msg=msg)
