"""Methods of tensors by a name that an assert limits: each is called by its name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from t2j_lsp import convert

SOURCE = """import torch


def reduced(t, mode="mean", dim=None, keepdim=False):
    {asserted}
    options = dict(dim=dim, keepdim=keepdim) if dim is not None else dict()
    if mode == "none":
        return t
    {call}
"""
TWO = "fn = getattr(t, mode)\n    return fn(**options)"
ASSERTED = 'assert mode in {"mean", "sum", "none"}, mode'


@pytest.mark.parametrize(
    "call",
    [
        TWO,
        "return getattr(t, mode)(**options)",
        "y = getattr(t, mode)(dim=1, keepdim=keepdim)\n    return torch.exp(y)",
    ],
)
def test_each_method_is_called_by_its_name(call: str) -> None:
    text = SOURCE.format(asserted=ASSERTED, call=call)
    done = convert(text)
    assert not done.gaps and "getattr" not in done.code
    both: list[dict[str, Any]] = [{}, {}]
    exec(text, both[0])
    exec(done.code, both[1])
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    for given in ({}, {"mode": "sum", "dim": 1}, {"dim": 0, "keepdim": True}, {"mode": "none"}):
        one, other = both[0]["reduced"](torch.from_numpy(x), **given), both[1]["reduced"](x, **given)
        np.testing.assert_allclose(np.asarray(other), one.numpy(), rtol=1e-5)
    with pytest.raises(AssertionError):
        both[1]["reduced"](x, mode="var")


@pytest.mark.parametrize(
    ("asserted", "call"),
    [
        ("pass", TWO),
        ('assert mode in {"mean", "sum", "none", "nobody"}', TWO),
        ("assert mode in MODES", TWO),
        ('if keepdim:\n        assert mode in {"mean", "sum"}', TWO),
        (ASSERTED, "mode = dim\n    " + TWO),
        (ASSERTED, "fn = getattr(t, mode)\n    t = t + 1\n    return fn(**options)"),
        (ASSERTED, "fn = getattr(t, mode)\n    return fn(**options) + fn(dim=1)"),
        ("pass", TWO.replace("return", 'assert mode in {"mean", "sum", "none"}\n    return')),
    ],
)
def test_a_name_that_nothing_limits_is_a_gap(asserted: str, call: str) -> None:
    assert any(gap.name == "getattr" for gap in convert(SOURCE.format(asserted=asserted, call=call)).gaps)
