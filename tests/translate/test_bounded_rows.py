"""``F.embedding(..., max_norm=...)`` of a module's table: the rows that are looked up are made shorter in it."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp.api import convert

SOURCE = """
import torch
import torch.nn.functional as F
from torch import nn


class Table(nn.Module):
    def __init__(self, max_norm):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(5, 4) * torch.arange(5.0)[:, None])
        self.max_norm = max_norm

    def forward(self, ids):
        return F.embedding(ids, self.weight, None, self.max_norm, norm_type={norm})
"""
IDS = np.array([[1, 3], [3, 0]])


@pytest.mark.parametrize("norm", ["2.0", "1.0"])
@pytest.mark.parametrize("max_norm", [3.0, None])
def test_the_table_has_the_rows_that_pytorchs_has(norm: str, max_norm: float | None) -> None:
    source = SOURCE.format(norm=norm)
    translation = convert(source)
    assert not translation.gaps
    names_of_torch: dict[str, Any] = {}
    names: dict[str, Any] = {}
    exec(source, names_of_torch)
    exec(translation.code, names)
    wanted, table = names_of_torch["Table"](max_norm), names["Table"](max_norm, rngs=nnx.Rngs(0))
    rows = wanted(torch.tensor(IDS))
    np.testing.assert_allclose(table(jnp.array(IDS)), rows.detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(table.weight[...]), wanted.weight.detach().numpy(), rtol=1e-5)
    assert (np.asarray(table.weight[4]) == 4).all()


def test_a_callers_tensor_can_t_be_written_into() -> None:
    text = "import torch\nimport torch.nn.functional as F\n\n\ndef f(i: torch.Tensor, w: torch.Tensor):\n"
    assert convert(f"{text}    return F.embedding(i, w, max_norm=1.0)\n").gaps
