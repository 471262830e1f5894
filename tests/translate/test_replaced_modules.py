"""Attributes that hold a module and then a function: both run under jit."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp import convert

NET = """\
import torch
from torch import nn


class Own(nn.Module):
    def forward(self, x, y):
        return (x - y).square().mean()


class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        {first}
        if kind == "other":
            {second}

    def forward(self, x, y):
        return self.loss(x, y)
"""
MSE, OWN = "self.loss = nn.MSELoss()", "self.loss = Own()"


@pytest.mark.parametrize("kind", ["first", "other"])
@pytest.mark.parametrize(("first", "second"), [(OWN, MSE), (MSE, OWN)])
def test_what_replaces_a_module_runs_under_jit(first: str, second: str, kind: str) -> None:
    text = NET.format(first=first, second=second)
    translation = convert(text)
    assert not translation.gaps
    assert convert(translation.code).code == translation.code
    sides: list[dict[str, Any]] = [{}, {}]
    exec(text, sides[0])
    exec(translation.code, sides[1])
    x, y = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
    net = sides[1]["Net"](kind, rngs=nnx.Rngs(0))
    got = nnx.jit(lambda net, x, y: net(x, y))(net, jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_allclose(got, sides[0]["Net"](kind)(torch.tensor(x), torch.tensor(y)), rtol=1e-5)


def test_what_stands_in_branches_of_which_one_runs_is_not_marked() -> None:
    both = f"{OWN}\n        else:\n            {MSE}"
    code = convert(NET.replace("{first}\n        if kind", "if kind").replace("{second}", both)).code
    assert "nnx.static" not in code and "nnx.data" not in code
