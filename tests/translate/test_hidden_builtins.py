"""Python's own functions that a conversion calls where a variable of the program has their name."""

from __future__ import annotations

import ast

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate
from t2j_lsp.translate.output.hidden_builtins import hidden_calls

AXES = """import torch


def f(x: torch.Tensor):
    {name} = 2
    axes = [i for i in range(2)]
    return x.sum(dim=axes) * {name}
"""


def test_a_function_whose_variable_has_the_name_is_a_gap() -> None:
    done = translate(AXES.format(name="tuple"), Options(helpers="import"))
    assert ["'tuple' is a variable of the program here" in gap.reason for gap in done.gaps] == [True]
    assert not translate(AXES.format(name="other"), Options(helpers="import")).gaps


@pytest.mark.parametrize(
    ("source", "code", "names"),
    [
        ("def f(int):\n    return x", "def f(int):\n    return int(x)", ["int"]),
        ("def f(int):\n    return int(x)", "def f(int):\n    return int(x)", []),
        ("def f(int):\n    return int(x)", "def f(int):\n    return int(x) + int(y)", ["int"]),
        ("def f(int):\n    return x", "def f(int):\n    return g(lambda: int(x))", ["int"]),
        ("def f(a):\n    int = a\n    return a", "def f(a):\n    int = a\n    return int(a)", ["int"]),
        ("def f(int):\n    return x", "def f(int):\n    def g(int):\n        return int(x)\n    return g", []),
        ("class A:\n    def forward(self, len): pass", "class A:\n    def __call__(self, len): return len(x)", ["len"]),
        ("def f(input):\n    return x", "def f(input):\n    return jnp.sum(input)", []),
        ("def f(a):\n    return a", "def f(a):\n    return int(a)", []),
        ("def f(int):\n    return x", "def step(y):\n    return int(y)\ndef f(int):\n    return step(x)", []),
    ],
)
def test_calls_that_the_source_has_not(source: str, code: str, names: list[str]) -> None:
    assert [p.name for p in hidden_calls(ast.parse(code), ast.parse(source))] == names
