"""``assert_close`` fails and passes where ``torch.testing.assert_close`` does."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp.rules.helpers.testing import assert_close

A = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
WITH_NAN = np.array([1.0, np.nan], np.float32)

CASES: list[tuple[Any, Any, dict[str, Any]]] = [
    (A, A, {}),
    (A, A * (1 + 1e-6), {}),
    (A, A * (1 + 1e-5), {}),
    (A, A + 8e-6, {}),
    (A, A + 1e-4, {}),
    (A, A + 1e-4, {"rtol": 0.0, "atol": 1e-3}),
    (A, A.astype(np.float16), {}),
    (A, A.astype(np.float16), {"check_dtype": False}),
    (A.astype(np.float16), (A * 1.0005).astype(np.float16), {}),
    (A, A[:1], {}),
    (A, A[None], {}),
    (WITH_NAN, WITH_NAN, {}),
    (WITH_NAN, WITH_NAN, {"equal_nan": True}),
    (np.arange(3, dtype=np.int32), np.arange(3, dtype=np.int32), {}),
    (np.arange(3, dtype=np.int32), np.arange(1, 4, dtype=np.int32), {}),
    (A > 0, A > 0, {}),
    (A > 0, A < 0, {}),
    ([A, A], [A, A + 1e-6], {}),
    ([A, A], [A], {}),
    ({"a": A}, {"a": A}, {}),
    ({"a": A}, {"b": A}, {}),
    (0.5, 0.5 + 1e-8, {}),
    (0.5, 0.6, {}),
    (A, A, {"rtol": 1e-3}),
]


def given(value: Any, convert: Any) -> Any:
    if isinstance(value, list):
        return [given(item, convert) for item in value]
    if isinstance(value, dict):
        return {key: given(item, convert) for key, item in value.items()}
    return convert(value) if isinstance(value, np.ndarray) else value


def outcome(check: Any, convert: Any, case: tuple[Any, Any, dict[str, Any]]) -> str:
    try:
        check(given(case[0], convert), given(case[1], convert), **case[2])
    except (AssertionError, ValueError) as error:
        return type(error).__name__
    return "passes"


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_it_fails_where_pytorch_does(case: tuple[Any, Any, dict[str, Any]]) -> None:
    assert outcome(assert_close, jnp.asarray, case) == outcome(torch.testing.assert_close, torch.tensor, case)
