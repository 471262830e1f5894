"""Plain forms of jax.numpy where the exact helper would make no difference: sizes that are known, no gradient."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

NET = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        self.head = {}

    def forward(self, x):
        return self.head(x).squeeze({})


"""
ONE = "nn.Linear(4, 1)"


@pytest.mark.parametrize(
    ("layer", "dim", "more", "plain"),
    [
        pytest.param(ONE, "-1", "", True, id="a layer of one feature"),
        pytest.param("nn.Linear(4, out_features=1)", "dim=-1", "", True, id="by name"),
        pytest.param("nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 1))", "-1", "", True, id="the last of several"),
        pytest.param("nn.Embedding(4, 1)", "-1", "", True, id="a table"),
        pytest.param("nn.Sequential(nn.Linear(4, 3), nn.Flatten(0))", "-1", "", False, id="a last one that isn't"),
        pytest.param(ONE, "1", "", False, id="an axis that may be another one"),
        pytest.param("nn.Linear(4, n)", "-1", "", False, id="as many as it is told"),
        pytest.param("nn.Linear(4, 2)", "-1", "", False, id="two features"),
        pytest.param(ONE, "-1", "net = Net()\nnet.head = nn.Linear(4, 3)\n", False, id="exchanged"),
        pytest.param(ONE, "-1", "def f(m):\n    setattr(m, 'head', nn.Linear(4, 3))\n", False, id="exchanged by name"),
        pytest.param(
            "nn.Sequential(nn.Tanh(), nn.Linear(4, 1))", "-1", "net = Net()\nnet.head[1] = nn.Linear(4, 3)\n", False,
            id="a child exchanged",
        ),
    ],
)  # fmt: skip
def test_an_axis_of_one_is_squeezed_plainly(layer: str, dim: str, more: str, plain: bool) -> None:
    code = convert(NET.format(layer, dim) + more).code
    assert ("self.head(x).squeeze(axis=-1)" in code) is plain
    assert ("return squeeze(self.head(x), axis=" in code) is not plain


@pytest.mark.parametrize(
    ("expression", "plain"),
    [
        ("x.abs().max().item()", True),
        ("float((x - y).abs().mean())", True),
        ("(-x.abs() + 1)[0].tolist()", True),
        ("(x.abs() > 0.5).float().mean()", True),
        ("x.abs().sum(1).argmax(0)", True),
        ("x.abs().mean()", False),
        ("(x.abs() is y)", False),
        ("y * (x.abs() + 1).mean()", False),
        ("max(x.abs())", False),
        ("[x.abs()][0].item()", False),
    ],
)
def test_what_becomes_a_number_has_no_gradient(expression: str, plain: bool) -> None:
    head = "import torch\n\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    return "
    code = convert(head + expression + "\n").code
    assert ("jnp.abs(" in code.partition("# PyTorch behaviour")[0]) is plain
    assert ("def absolute(" in code) is not plain


def test_bounds_are_clipped_plainly_where_no_gradient_is_taken() -> None:
    head = "import torch\n\n\ndef f(x: torch.Tensor):\n    "
    code = convert(head + "with torch.no_grad():\n        x = x.clamp(0, 1)\n    return x\n").code
    assert "x = x.clip(0, 1)" in code and "def clamp" not in code
    assert "def clamp" in convert(head + "return x.clamp(0, 1)\n").code
