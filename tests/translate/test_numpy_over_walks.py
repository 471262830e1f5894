"""What NumPy computes over all parameters is the same in any order: ``np.sum([np.prod(p.size()) for p in ...])``."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp import convert

from .side_by_side import sides

SOURCE = """
import numpy as np
from torch import nn

model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
result = {}
"""


@pytest.mark.parametrize(
    "expression",
    [
        "np.sum([np.prod(v.size()) for name, v in model.named_parameters() if 'bias' not in name]) / 1e6",
        "np.sum([p.numel() for p in model.parameters()])",
        "np.mean([p.dim() for p in model.parameters()])",
        "np.max(list(p.numel() for p in model.parameters()))",
    ],
)
def test_numpys_functions_over_all_parameters_convert(expression: str) -> None:
    pair = sides(SOURCE.format(expression), "numpy_over_walks")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.result, pair.torch.result)


@pytest.mark.parametrize("expression", ["np.cumsum({})", "np.sum({}, axis=0)", "np.array({})"])
def test_those_that_keep_the_order_stay(expression: str) -> None:
    walk = "[p.numel() for p in model.parameters()]"
    assert convert(SOURCE.format(expression.format(walk))).gaps
