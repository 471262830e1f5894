"""A name that holds what is PyTorch's in one branch and None in another is read as the variable it is."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp import convert

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
FUNCTIONS = {
    "a condition": "op = torch.relu if flag else None\n    return op(x) if op else x",
    "a branch": (
        "op = None\n    if flag:\n        op = torch.sum\n    if op is None:\n        return x\n    return op(x, dim=1)"
    ),
    "a table": "op = {'a': torch.sin, 'b': None}['a' if flag else 'b']\n    return op(x) if op else x",
    "a dtype": "kind = None\n    if flag:\n        kind = torch.int32\n    return x if kind is None else x.to(kind)",
    "a dtype that is handed on": (
        "kind = None\n    if flag:\n        kind = torch.int32\n    return torch.ones(3, dtype=kind) * x.sum()"
    ),
    "another name": (
        "op = None\n    if flag:\n        op = torch.exp\n    again = op\n    return again(x) if again else x"
    ),
}
NET = """class Net(nn.Module):
    def __init__(self, flag: bool):
        super().__init__()
        norm = None
        if flag:
            norm = nn.Tanh
        layers = [nn.ReLU()]
        if norm is not None:
            layers.append(norm())
        self.net = nn.Sequential(*layers)
        act = None
        if not flag:
            act = F.silu
        self.act = act
        self.pool = torch.sum if flag else None

    def forward(self, x):
        x = self.net(x)
        if self.act is not None:
            x = self.act(x)
        return self.pool(x, dim=1) if self.pool else x
"""


def run(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The names of a source and of its conversion, which has no gap."""
    done = convert(text)
    assert not done.gaps
    sides: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    exec(text, sides[0])
    exec(done.code, sides[1])
    return sides


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("body", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_does_what_it_did_on_both_ways(body: str, flag: bool) -> None:
    sides = run(HEAD + f"def f(x: torch.Tensor, flag: bool):\n    {body}\n")
    x = np.arange(-3.0, 3.0, dtype=np.float32).reshape(2, 3)
    wanted = sides[0]["f"](torch.tensor(x), flag).numpy()
    given = sides[1]["f"](jnp.asarray(x), flag)
    np.testing.assert_allclose(given, wanted, rtol=1e-6)
    assert given.dtype == wanted.dtype


@pytest.mark.parametrize("flag", [True, False])
def test_a_module_makes_what_it_made_on_both_ways(flag: bool) -> None:
    sides = run(HEAD + NET)
    x = np.arange(-3.0, 3.0, dtype=np.float32).reshape(2, 3)
    wanted = sides[0]["Net"](flag)(torch.tensor(x)).numpy()
    np.testing.assert_allclose(sides[1]["Net"](flag, rngs=nnx.Rngs(0))(jnp.asarray(x)), wanted, rtol=1e-6)


def test_a_parameter_that_some_callers_leave_out_is_asked() -> None:
    text = "def g(x: torch.Tensor, act=None):\n    return act(x) if act is not None else x\n\n\n"
    code = convert(HEAD + text + "def f(x: torch.Tensor):\n    return g(x) + g(x, torch.tanh)\n").code
    assert "return act(x) if act is not None else x" in code


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ("if op is None:\n        op = torch.mean\n    return op(x, dim=1)", "op"),
        ("op = op or torch.max\n    return op(x, 1)", "op"),
        ("fn = op if op is not None else F.softmax\n    return fn(x, dim=-1)", "fn"),
    ],
)
def test_a_call_that_only_pytorchs_function_takes_is_a_gap(lines: str, name: str) -> None:
    gaps = convert(HEAD + f"def f(x: torch.Tensor, op=None):\n    {lines}\n").gaps
    assert [(gap.code, gap.name) for gap in gaps] == [("function-value", name)]


@pytest.mark.parametrize(
    "lines", ["op = op or torch.sum\n    return op(x)", "op = op or torch.sum\n    return op(x, 1)"]
)
def test_a_call_that_both_take_stays(lines: str) -> None:
    assert not convert(HEAD + f"def f(x: torch.Tensor, op=None):\n    {lines}\n").gaps


def test_an_attribute_that_may_be_pytorchs_function_is_none_of_jaxs_with_its_keywords() -> None:
    text = "class Net(nn.Module):\n    def __init__(self, op=None):\n        super().__init__()\n"
    text += "        self.op = op if op is not None else torch.mean\n\n    def forward(self, x):\n"
    assert [gap.name for gap in convert(HEAD + text + "        return self.op(x, dim=1)\n").gaps] == ["self.op"]


def test_what_an_import_may_not_find_is_what_stands_in_its_place() -> None:
    text = "try:\n    from torch.nn import RMSNorm\nexcept ImportError:\n    RMSNorm = None\n\n\n"
    done = convert(HEAD + text + "def make(n: int):\n    return RMSNorm(n)\n")
    assert not done.gaps and "return RMSNorm(n, rngs=rngs)" in done.code
