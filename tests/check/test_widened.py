"""Narrow types that a program names are wide ones where it is decided in float64, whatever it calls their library."""

from __future__ import annotations

import ast

import pytest

from t2j_lsp.check.workers.widen import widen
from t2j_lsp.contract import VerdictKind

from .conftest import Check


@pytest.mark.parametrize(
    ("text", "wide"),
    [
        ("x.to(torch.float32)", "x.to(torch.float64)"),
        ("import torch as th\nx.to(th.float)", "import torch as th\nx.to(th.float64)"),
        ("import torch as th\nth.FloatTensor", "import torch as th\nth.DoubleTensor"),
        ("import jax.numpy as jn\njn.bfloat16", "import jax.numpy as jn\njn.float64"),
        ("from jax import numpy as jn\njn.complex64", "from jax import numpy as jn\njn.complex128"),
        ("from torch import float32", "from torch import float64 as float32"),
        ("from torch import nn, float as f", "from torch import nn, float64 as f"),
        ("from .torch import float32", "from .torch import float32"),
        ("import other as th\nth.float32", "import other as th\nth.float32"),
        (
            "import jax.numpy as jn\nx.dtype == jn.int32",
            "import jax.numpy as jn\nx.dtype in (jn.int32, jn.int64)",
        ),
        (
            "import jax.numpy as jn\nx.dtype in (jn.int32, jn.int8)",
            "import jax.numpy as jn\nx.dtype in (jn.int32, jn.int8, jn.int64)",
        ),
    ],
)
def test_types_are_known_by_what_a_program_calls_their_library(text: str, wide: str) -> None:
    assert ast.unparse(widen(ast.parse(text), "text")) == wide


SOURCE = (
    "import torch as th\nfrom torch import float32\ndef f(x):\n    return th.exp(x.to(th.float32)) + x.to(float32)\n"
)
CONVERTED = "import jax.numpy as jn\ndef f(x):\n    return jn.exp(x.astype(jn.float32)) + x.astype(jn.float32)\n"


def test_a_cast_to_float32_under_other_names_accuses_nobody(check: Check) -> None:
    verdict = check(SOURCE, CONVERTED)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    wrong = check(SOURCE, CONVERTED.replace("jn.exp(", "jn.expm1("))
    assert wrong.verdict is VerdictKind.DIFFERENT
