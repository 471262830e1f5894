"""Lists, tuples and dicts of NumPy's arrays that a module keeps are data for Flax, as such of tensors are."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp import convert

TEXT = """import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, n: int = 3):
        super().__init__()
        {kept}

    def forward(self, x):
        return x * torch.as_tensor({read})
"""


@pytest.mark.parametrize(
    ("kept", "read"),
    [
        ("self.sizes = [np.array([n, n]), np.arange(n)]", "self.sizes[1]"),
        ("self.pair = (np.ones(n), np.arange(n))", "self.pair[1]"),
        ("self.table = {'a': np.arange(n)}", "self.table['a']"),
        ("self.rows = []\n        for i in range(2):\n            self.rows += [np.full(n, float(i))]", "self.rows[1]"),
        ("self.one = np.arange(n)", "self.one"),
    ],
)  # fmt: skip
def test_what_holds_arrays_of_numpys_is_data(kept: str, read: str) -> None:
    text = TEXT.format(kept=kept, read=read)
    sides: list[dict[str, Any]] = [{}, {}]
    exec(text, sides[0])
    exec(convert(text).code, sides[1])
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    given = nnx.jit(sides[1]["Net"](rngs=nnx.Rngs(0)))(jnp.asarray(x))
    np.testing.assert_allclose(given, sides[0]["Net"]()(torch.tensor(x)).numpy())


@pytest.mark.parametrize("kept", ["self.sizes = [n, n]", "self.names = ['a', 'b']", "self.pair = (n, 'a')"])
def test_others_stay(kept: str) -> None:
    assert "nnx.data" not in convert(TEXT.format(kept=kept, read="[1.0, 2.0, 3.0]")).code
