"""Functions that keep a module's mode, switch it off, and set it again: what only a module has done to it is one."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
from flax import nnx

from t2j_lsp.api import convert

SOURCE = """
import torch
from torch import nn


def eval_decorator(fn):
    def inner(self, *args, **kwargs):
        was_training = self.training
        self.eval()
        out = fn(self, *args, **kwargs)
        self.train(was_training)
        return out
    return inner


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x)

    @eval_decorator
    def generate(self, x):
        return self(x)
"""


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_the_mode_is_as_it_was(mode: str) -> None:
    translation = convert(SOURCE)
    assert not translation.gaps
    names: dict[str, Any] = {}
    exec(translation.code, names)
    net = names["Net"](rngs=nnx.Rngs(0))
    getattr(net, mode)()
    assert (net.generate(jnp.ones(50)) == 1).all()
    assert net.drop.deterministic == (mode == "eval")
    assert convert(translation.code).code == translation.code


@pytest.mark.parametrize("line", ["        self.eval()\n", "        self.train(was_training)\n"])
def test_what_is_only_asked_for_its_mode_may_be_something_else(line: str) -> None:
    assert any("module.deterministic" in gap.reason for gap in convert(SOURCE.replace(line, "")).gaps)
