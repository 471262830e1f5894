"""Variables that stand for a layer's parameter and are written in place: the parameter is what is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flax import nnx

from t2j_lsp.api import convert

SOURCE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)

    @torch.no_grad()
    def rescale(self, scale: float):
        {body}

    def forward(self, x):
        return self.fc(x)
"""
WRITES = {
    "a method": "w = self.fc.weight\n        n = w.shape[0]\n        w.mul_(scale * n)",
    "of its data": "w = self.fc.weight.data\n        w.mul_(scale * w.shape[0])",
    "two on a line": "w = self.fc.weight; n = w.shape[0]\n        w.mul_(scale * n)",
    "in a loop": "for m in self.modules():\n            if isinstance(m, nn.Linear):\n"
    "                w = m.weight  # (out, in)\n                w.mul_(scale * w.shape[0])",
}


@pytest.mark.parametrize("body", WRITES.values(), ids=WRITES)
def test_the_layer_has_the_new_values(body: str) -> None:
    translation = convert(SOURCE.format(body=body))
    assert not translation.gaps
    names: dict[str, Any] = {}
    exec(translation.code, names)
    net = names["Net"](rngs=nnx.Rngs(0))
    before = np.asarray(net.fc.kernel[...])
    net.rescale(0.5)
    np.testing.assert_allclose(np.asarray(net.fc.kernel[...]), before * 0.5 * 4, rtol=1e-6)
    assert convert(translation.code).code == translation.code


@pytest.mark.parametrize(("layer", "gaps"), [("layer: nn.Module", 0), ("layer", 1)])
def test_it_is_surely_a_module_s(layer: str, gaps: int) -> None:
    written = f"import torch\nfrom torch import nn\n\n\ndef f({layer}):\n    w = layer.weight\n    w.mul_(2)\n"
    translation = convert(written)
    assert bool(translation.gaps) == bool(gaps) and ("set_torch_parameter(layer" in translation.code) == (not gaps)


@pytest.mark.parametrize(
    "body",
    [
        "w = self.fc.weight\n        self.fc = nn.Linear(3, 4)\n        w.mul_(scale)",
        "w = self.fc.weight\n        if scale:\n            w = w * 2\n        w.mul_(scale)",
        "w = self.fc.weight\n        later = lambda: w\n        w.mul_(scale)\n        return later",
        "for m in self.modules():\n            w = m.weight\n        w.mul_(scale)",
    ],
    ids=["another layer", "another value", "kept for later", "behind its loop"],
)
def test_where_it_may_be_another_tensor_it_is_a_gap(body: str) -> None:
    assert convert(SOURCE.format(body=body)).gaps
