"""timm's `DropPath`, which files for images mostly import for itself: a Dropout of whole examples."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert

SOURCE = """from torch import nn
from timm.{module} import DropPath, to_2tuple


class Net(nn.Module):
    def __init__(self, rate=0.5):
        super().__init__()
        self.path = DropPath({arguments})
        self.size = to_2tuple(3)

    def forward(self, x):
        return self.path(x)
"""


@pytest.mark.parametrize("module", ["layers", "models.layers", "layers.drop", "models.layers.drop"])
@pytest.mark.parametrize("arguments", ["rate", "rate, scale_by_keep=False", "drop_prob=rate"])
def test_examples_are_dropped_whole(module: str, arguments: str) -> None:
    done = convert(SOURCE.format(module=module, arguments=arguments))
    assert not done.gaps and f"from timm.{module} import to_2tuple" in done.code
    made: dict[str, Any] = {}
    exec(done.code.replace(f"from timm.{module} import to_2tuple", "to_2tuple = int"), made)
    net, x = made["Net"](rngs=nnx.Rngs(0)), jnp.arange(1.0, 161.0).reshape(40, 2, 2)
    factors = np.asarray(net(x) / x)
    assert {*map(float, factors.ravel())} == {0.0, 1.0 if "scale_by_keep" in arguments else 2.0}
    assert (factors == factors[:, :1, :1]).all()
    net.eval()
    assert (net(x) == x).all()
    for rate, factor in ((0.0, 1.0), (1.0, 0.0)):
        edge = made["Net"](rate, rngs=nnx.Rngs(0))
        assert (edge(x) == factor * x).all()
