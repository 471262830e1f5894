"""Functions kept in attributes that hold modules, and orders in which modules are walked."""

# ruff: noqa: E501 - programs of one line each

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from t2j_lsp import convert
from t2j_lsp.api import convert_file
from t2j_lsp.contract import Options

CLASS = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc = nn.Linear(d, d)
        self.act = nn.ReLU()
{lines}

    def _mid(self, x):
        return self.fc(x)

    def forward(self, x):
        return x
"""


def converted(*lines: str) -> tuple[str, list[str]]:
    result = convert(CLASS.format(lines=textwrap.indent("\n".join(lines), "        ")))
    return result.code, [gap.reason for gap in result.gaps]


@pytest.mark.parametrize(
    ("lines", "method"),
    [
        (["self.f = lambda x: self.act(self.fc(x))"], ["def f(self, x):", "    return nnx.relu(self.fc(x))"]),
        (["m = self.fc", "self.f = lambda x, y: m(x) + y"], ["def f(self, x, y):", "    m = self.fc", "    return m(x) + y"]),
        (["m = self", "self.f = lambda *xs: [m.fc(x) for x in xs]"], None),
        (["for i in range(2):", "    self.f = lambda x: self.fc(x)"], None),
        (["self.f = lambda x, k=d: self.fc(x) * k"], None),
        (["m = nn.Linear(d, d)", "self.f = lambda x: m(x)"], None),
        (["def run(x):", "    return self.fc(x)", "self.f = run"], None),
        (["self.f = self._mid"], None),
        (["self.f = self.fc.forward"], None),
        (["self.f = [self.fc, self._mid]"], None),
    ],
)  # fmt: skip
def test_a_function_that_holds_modules_is_a_method_or_a_gap(lines: list[str], method: list[str] | None) -> None:
    code, gaps = converted(*lines)
    if method is None:
        assert len(gaps) == 1 and "holds modules" in gaps[0]
    else:
        assert not gaps
        assert textwrap.indent("\n".join(method), "    ") in code.replace("self.act", "nnx.relu")
        own = code[code.index("class ") : code.index("def uniform_init")]
        assert "lambda" not in own and code.count("m = self.fc") <= 1


@pytest.mark.parametrize(
    "lines",
    [
        ["self.f = lambda x: torch.relu(x) * d"],
        ["self.f = torch.tanh"],
        ["self.make = lambda n: nn.Linear(n, n)"],
        ["self.n = len([self.fc, self.act])"],
        ["self.out = self._mid(torch.ones(d))"],
    ],
)
def test_a_function_that_holds_none_stays(lines: list[str]) -> None:
    _, gaps = converted(*lines)
    assert not any("holds modules" in gap for gap in gaps)


def test_a_function_that_another_file_made_holds_none_of_this_one(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text(
        "import torch\n\n\ndef ntuple(n):\n    def parse(x):\n        return (x,) * n\n    return parse\n\n\nto_2 = ntuple(2)\n"
    )
    (tmp_path / "net.py").write_text(
        CLASS.format(lines="        self.pair = to_2(d)\n        self.make = to_2").replace(
            "import torch\n", "import torch\nfrom helpers import to_2\n", 1
        )
    )
    result = convert_file(tmp_path / "net.py", Options()).translation
    assert not any("holds modules" in gap.reason for gap in result.gaps)


WALKED = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
other = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
"""


@pytest.mark.parametrize(
    "line",
    [
        "w, b = model[0].parameters()",
        "first = list(model.parameters())[0]",
        "shapes = [p.shape for p in model.parameters()]",
        "for name, p in model.named_parameters():\n    print(name, p.grad)",
        "for i, p in enumerate(model.parameters()):\n    p.data.fill_(i)",
        "pairs = list(zip(model.parameters(), [1, 2, 3, 4]))",
        "kinds = [type(m) for m in model.modules()]",
        "weight = next(model.parameters())\nprint(weight.sum())",
        "k = 0\nfor p in model.parameters():\n    p.data.fill_(k)\n    k += 1",
        "for p in model.parameters():\n    if p.ndim > 1:\n        break\nprint(p.shape)",
        "held = list(model.parameters())\nprint(held[0].sum())",
        "held = model.parameters()\na, b = sum(p.numel() for p in held), sum(p.numel() for p in held)",
        "if (held := list(model.parameters())):\n    print(held)",
        "def f(held):\n    held = held or list(model.parameters())\n    for p in held:\n        p.data.zero_()",
    ],
)
def test_an_order_that_shows_is_a_gap(line: str) -> None:
    assert any("order" in gap.reason for gap in convert(f"{WALKED}{line}\n").gaps)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("n = sum(p.numel() for p in model.parameters())", "jax.tree.leaves(nnx.state(model, nnx.Param))"),
        ("top = max(p.abs().max() for p in list(model.parameters()))", "jax.tree.leaves"),
        ("device = next(model.parameters()).dtype", "jax.tree.leaves"),
        ("for p in model.parameters():\n    nn.init.zeros_(p)", "nnx.to_flat_state"),
        ("for p in model.parameters():\n    p.data.zero_()", "p[...] ="),
        (
            "for m in model.modules():\n    if isinstance(m, nn.Linear):\n        nn.init.zeros_(m.bias)",
            "nnx.iter_modules",
        ),
        ("names = {n for n, _ in model.named_parameters()}", "torch_name"),
        ("held = model.parameters()\nn = sum(p.numel() for p in held)", "held = jax.tree.leaves"),
        ("held = list(model.parameters())\nfor p in held:\n    p.data.zero_()", "p[...] ="),
        ("if (held := list(model.parameters())):\n    n = sum(p.numel() for p in held)", "(held := list(jax.tree"),
        ("if len(held := list(model.parameters())) > 2:\n    n = max(p.numel() for p in held)", "jax.tree.leaves"),
        ("opt = torch.optim.SGD((held := model.parameters()), lr=0.1)", "nnx.Optimizer(model, optax.sgd(0.1)"),
    ],
)
def test_an_order_that_does_not_show_is_walked(line: str, expected: str) -> None:
    result = convert(f"{WALKED}{line}\n")
    assert not result.gaps and expected in result.code


def test_a_loop_that_writes_walks_over_variables() -> None:
    code = convert(f"{WALKED}for p in list(model.parameters()):\n    p.data.zero_()\n").code
    scope: dict[str, object] = {}
    exec(compile(f"{code}\ntotal = float(abs(model(jax.numpy.ones((1, 2)))).sum())", "<converted>", "exec"), scope)
    assert scope["total"] == 0.0


@pytest.mark.parametrize("call", ["model.apply(print).eval()", "model.to_empty(device='cpu')"])
def test_methods_that_nnx_modules_have_not_are_gaps(call: str) -> None:
    assert convert(f"{WALKED}{call}\n").gaps


DEFAULTS = """

def default(value, d):
    if value is not None:
        return value
    return {returned}
"""


@pytest.mark.parametrize(
    ("returned", "gap"),
    [
        ("d() if callable(d) else d", False),
        ("d()", False),
        ("d", True),
        ("d if callable(d) else d()", True),
        ("[d, d()]", True),
    ],
)
def test_a_function_that_is_called_at_once_holds_nothing(returned: str, gap: bool) -> None:
    lines = textwrap.indent("self.width = default(None, lambda: self.fc.in_features)", "        ")
    gaps = convert(DEFAULTS.format(returned=returned) + CLASS.format(lines=lines)).gaps
    assert [g.reason for g in gaps if "holds modules" not in g.reason] == []
    assert bool(gaps) == gap


def test_a_bool_that_was_asked_of_a_function_is_no_function() -> None:
    source = """import torch
from inspect import signature
from torch import nn


class Wrap(nn.Module):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net
        self.masked = "mask" in signature(net.forward).parameters
        self.plain = not callable(self.net.forward)

    def forward(self, x):
        return self.net(x)
"""
    gaps = convert(source).gaps
    assert all("holds modules" not in gap.reason for gap in gaps)
    assert [gap.name for gap in gaps] == ["torch.nn.Module.forward"], "Flax's layers name what they take otherwise"
