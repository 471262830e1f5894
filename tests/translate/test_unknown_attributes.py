"""Attributes that hold None first and then what nothing is known of: a module by its use, or a gap."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
from flax import nnx

from t2j_lsp import convert

TEXT = """\
import torch
from torch import nn


def chosen(make, kind, *sizes):
    if kind == "a":
        return make(*sizes)
    elif kind == "b":
        return make(*sizes[::-1])
    else:
        raise ValueError


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model{call}(x)


class Net(Base):
    def __init__(self, kind: str = "a"):
        super().__init__()
        self.model = chosen({make}, kind, 3, 4)


def mlp(n, m):
    layers = [nn.Linear(n, m)]
    return nn.Sequential(*layers)
"""


def test_what_is_called_by_forward_is_a_module() -> None:
    done = convert(TEXT.format(call=".forward", make="mlp"))
    assert not done.gaps and "nnx.data(" in done.code
    names: dict[str, Any] = {}
    exec(done.code, names)
    assert nnx.jit(names["Net"](rngs=nnx.Rngs(0)))(jnp.ones((2, 3))).shape == (2, 4)


def test_what_a_subclass_gives_in_another_file_is_called_as_a_module_is() -> None:
    text, _, _ = TEXT.format(call=".forward", make="mlp").partition("class Net")
    done = convert(text)
    assert "return self.model(x)" in done.code and not done.gaps


@pytest.mark.parametrize("make", ["lambda n, m: (lambda x: x * n)", "print"])
def test_what_may_be_a_function_as_well_is_said(make: str) -> None:
    (gap,) = convert(TEXT.format(call="", make=make)).gaps
    assert gap.code == "unsure" and "nnx.data" in gap.reason


def test_what_is_only_read_stays() -> None:
    text = TEXT.format(call="", make="mlp").replace("self.model(x)", "x if self.model else -x")
    assert not [gap for gap in convert(text).gaps if "nnx.data" in gap.reason]


@pytest.mark.parametrize("used", ["torch.max({}.data, 1)", "{}.data.cpu().numpy()"])
@pytest.mark.parametrize("held", ["out.logits if many else out", "out.logits"])
def test_data_of_what_is_used_as_a_tensor_is_said(used: str, held: str) -> None:
    text = f"import torch\n\ndef read(out, many):\n    scores = {held}\n    return {used.format('scores')}\n"
    assert any("stop_gradient" in gap.reason for gap in convert(text).gaps)


@pytest.mark.parametrize("used", ["torch.tensor(bunch.data)", "bunch.data.shape", "torch.from_numpy(bunch.data)"])
def test_data_of_other_libraries_stays(used: str) -> None:
    text = f"import torch\nfrom sklearn.datasets import load_iris\n\nbunch = load_iris()\nx = {used}\n"
    done = convert(text)
    assert not done.gaps and "bunch.data" in done.code
