"""What a module keeps in a dict between passes in evaluation mode, and empties in train(), is computed in each."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp import convert
from t2j_lsp.contract import Severity

SOURCE = """\
import torch
from torch import nn


class Attention(nn.Module):
    cache: dict

    def __init__(self, n: int):
        super().__init__()
        self.bias = nn.Parameter(torch.arange(float(n)))
        self.register_buffer("index", torch.arange(n).flip(0), persistent=False)
        self.cache = {}
        self.reset()

    @torch.no_grad()
    def train(self, mode=True):
        super().train(mode)
        if mode and self.cache:
            self.cache = {}  # clear it

    def _apply(self, fn):
        self.cache = {}
        return super()._apply(fn)

    def reset(self):
        self.cache = {}

    def biases(self, device):
        if torch.jit.is_tracing() or self.training:
            return self.bias[self.index]
        else:
            key = str(device)
            if key not in self.cache:
                self.cache[key] = self.bias[self.index]
            return self.cache[key]

    def forward(self, x):
        return x * self.biases(x.device)
"""


def test_it_is_computed_in_each_pass() -> None:
    done = convert(SOURCE)
    assert not done.gaps, done.gaps
    assert "cache" not in done.code
    notes = [f.reason for f in done.findings if f.severity is Severity.NOTE and "isn't kept" in f.reason]
    assert len(notes) == 1
    sides: list[dict[str, Any]] = [{}, {}]
    for side, code in zip(sides, (SOURCE, done.code), strict=True):
        exec(code, side)
    reference, module, x = sides[0]["Attention"](3), sides[1]["Attention"](3, rngs=nnx.Rngs(0)), np.ones(3, np.float32)
    for _ in range(2):
        reference.train()
        reference.eval(), module.eval()
        run = nnx.jit(lambda module, x: module(x))
        np.testing.assert_array_equal(run(module, jnp.asarray(x)), reference(torch.from_numpy(x)).detach().numpy())
        with torch.no_grad():
            reference.bias.mul_(2)
        module.bias[...] = module.bias[...] * 2


VALUE = "= self.bias[self.index]\n            return"
KEEPS = {
    "train() does more": ("{}  # clear it\n", "{}\n        self.bias.zero_()\n"),
    "it is asked for elsewhere": ("        return x * self", "        print(len(self.cache))\n        return x * self"),
    "the value is computed by a call": (VALUE, "= torch.rand(3)\n            return"),
    "the value follows from something else": (VALUE, "= self.bias[device]\n            return"),
    "it is kept in training too": ("if torch.jit.is_tracing() or self.training", "if torch.jit.is_tracing()"),
    "another key is read": ("return self.cache[key]", "return self.cache[device]"),
    "others read it": ("self.biases(x.device)\n", "self.biases(x.device)\n\n\ndef f(net):\n    return net.cache\n"),
}  # fmt: skip


@pytest.mark.parametrize("change", KEEPS.values(), ids=KEEPS)
def test_it_stays_where_more_is_done_with_it(change: tuple[str, str]) -> None:
    assert change[0] in SOURCE
    done = convert(SOURCE.replace(*change))
    assert "self.cache" in done.code
    assert any(gap.name == "torch.nn.Module.train" for gap in done.gaps)
