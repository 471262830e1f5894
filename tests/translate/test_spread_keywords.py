"""Keywords that functions and methods of tensors are given in a dict: read where they stand, else a gap."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp import convert

from .side_by_side import sides

HEAD = "import torch\n\n\ndef f(x: torch.Tensor, y, dim=1, flag=False):\n    "


@pytest.mark.parametrize("table", ['{"dim": dim, "keepdim": True}', "dict(dim=dim, keepdim=True)"])
@pytest.mark.parametrize(
    "value", ["x.mean(**opts)", "torch.amax(x, **opts) - x.sum(**opts)", "x.std(**opts, unbiased=False)"]
)
def test_a_dict_that_is_written_out_is_read_as_keywords(table: str, value: str) -> None:
    both = sides(f"{HEAD}opts = {table}\n    return {value}\n", "spread")
    assert both.gaps() == []
    x = np.random.default_rng(0).normal(size=(3, 4))
    np.testing.assert_allclose(both.jax.f(jnp.asarray(x), None), both.torch.f(torch.tensor(x), None), rtol=1e-6)


@pytest.mark.parametrize(
    "lines",
    [
        "opts = dict(dim=dim) if flag else dict()\n    return y.sum(**opts) * x",
        "opts = {'dim': dim}\n    if flag:\n        opts['keepdim'] = True\n    return x.mean(**opts)",
        "opts = dict(dim=dim)\n    opts.update(keepdim=flag)\n    return x.mean(**opts)",
    ],
)
def test_one_that_may_hold_more_or_less_is_a_gap(lines: str) -> None:
    assert any("do not fit" in gap.reason for gap in convert(f"{HEAD}{lines}\n").gaps)
