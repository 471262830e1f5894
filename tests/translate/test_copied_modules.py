"""Copies that a forward pass makes: their parameters are others, so that no gradient comes to the original by them."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert

from .side_by_side import compare, randomized, sides

NET = """\
import copy
from copy import deepcopy
import torch
from torch import nn


def apart(head: nn.Module, x):
    twin = deepcopy(head)
    return twin(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.scale = nn.BatchNorm1d(3), nn.Parameter(torch.rand(3))
        self.head, self.act = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), nn.ReLU()

    def copied(self, x):
        return copy.deepcopy(self.head)(x)

    def forward(self, x):
        x = self.norm(x)
        {}
        return out * self.head(x * 2) * self.scale
"""
BODIES = {
    "called": "frozen = deepcopy(self.head)\n        out = frozen(x)",
    "frozen too": "frozen = copy.deepcopy(self.head)\n        for p in frozen.parameters():\n"
    "            p.requires_grad_(False)\n        frozen.eval()\n        out = frozen(frozen(x))",
    "a method": "out = self.copied(x)",
    "a function": "out = apart(self.head, x)",
    "an activation": "act = deepcopy(self.act)\n        out = act(self.head(x))",
    "a parameter": "scale = deepcopy(self.scale)\n        out = x * scale",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_no_gradient_comes_to_the_original(body: str) -> None:
    both = sides(NET.format(body), "copied_modules")
    assert not both.gaps()
    x = np.random.default_rng(0).normal(size=(5, 3))
    with jax.enable_x64():
        compare(randomized(both.torch.Net()), both.jax.Net(rngs=nnx.Rngs(0)), [x], train=True, jit=True)


def test_copies_that_are_made_for_a_model_keep_their_gradients() -> None:
    made = "return nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])"
    done = convert(f"import copy\nfrom torch import nn\n\n\ndef clones(layer: nn.Module, n):\n    {made}\n")
    assert "stop_gradient" not in done.code


@pytest.mark.parametrize("use", ["self.kept = frozen", "torch.optim.SGD(frozen.parameters(), 0.1)"])
def test_flags_of_a_copy_that_is_kept_stay(use: str) -> None:
    flags = "for p in frozen.parameters():\n            p.requires_grad = False"
    body = f"frozen = deepcopy(self.other.head)\n        {flags}\n        {use}"
    assert convert(NET.format(f"{body}\n        out = frozen(x)")).gaps


def test_a_copy_of_what_may_be_a_function_is_a_gap() -> None:
    assert (
        "gradients end at"
        in convert(NET.format("frozen = deepcopy(self.given)\n        out = frozen(x)")).gaps[0].reason
    )
