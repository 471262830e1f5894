"""The last reading of a conversion: what fails in it and not in its source is found, and nothing else."""

# ruff: noqa: E501 - programs of one line each

from __future__ import annotations

import ast
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from t2j_lsp import convert
from t2j_lsp.plugins import load_rules
from t2j_lsp.translate.output.own_calls import misfits
from t2j_lsp.translate.output.reading import new_problems
from t2j_lsp.translate.rule.record import REGISTRY

ROOT = Path(__file__).parents[2]


def problems(code: str, source: str = "") -> list[tuple[str, bool]]:
    load_rules()  # which decorators leave a function's parameters
    trees = [ast.parse(textwrap.dedent(text)) for text in (code, source)]
    return [(p.name, p.certain) for p in new_problems(*trees)]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("print(x)", [("x", True)]),
        ("def f():\n    return x", [("x", True)]),
        ("def f():\n    y = x\n    x = 1", [("x", True)]),
        ("def f(a):\n    if a:\n        x = 1\n    return x", [("x", False)]),
        ("def f(a):\n    for i in a:\n        x = i\n    return x", [("x", False)]),
        ("def f(a):\n    while True:\n        x = a()\n        if x:\n            break\n    return x", []),
        ("def f(a):\n    for i in a:\n        total += i\n    return i", [("total", False), ("i", False)]),
        ("def f(a):\n    try:\n        x = a()\n    except E as e:\n        pass\n    return x", [("E", True), ("x", False)]),
        ("def f(a):\n    try:\n        x = a()\n    finally:\n        y = 1\n    return x, y", []),
        ("def f(a):\n    x = a\n    del x\n    return x", [("x", True)]),
        ("def f(a):\n    if (x := a):\n        return x\n    return x", []),
        ("def f(a):\n    return a and (x := a) and x, x", [("x", False)]),
        ("def f(a):\n    return [x for x in a], x", [("x", True)]),
        ("def f(a):\n    match a:\n        case [x, *_]:\n            pass\n        case _:\n            x = 1\n    return x", []),
        ("def f(a):\n    match a:\n        case [x, *_]:\n            pass\n    return x", [("x", False)]),
        ("def f(a):\n    def g():\n        return x\n    x = a\n    return g()", []),
        ("def f(a):\n    with a as x:\n        y = x\n    return x, y", []),
        ("def f(a):\n    for x in a:\n        pass\n    else:\n        x = 1\n    return x", []),
        ("def f(a):\n    if a:\n        x = 1\n        y = x\n    a(x, y)", [("x", False)]),
        ("def f(a):\n    if a:\n        x = 1\n        y = x\n    a(y)", [("y", False)]),
        ("def f(a):\n    if a:\n        x = 1\n        y = x\n    while a:\n        x, y = a(x, y)", [("x", False)]),
        ("def f(a):\n    if a:\n        x = 1\n        y = x\n    while a:\n        x = a(x, y)", [("x", False)]),
        ("def f(a):\n    if a:\n        x, y = 1, 2\n    if a:\n        x = a(x, y)\n    a(x, y)", []),
        ("def f(a):\n    if a:\n        x = y = 1\n    for x in a:\n        pass\n    a(x, y)", [("y", False)]),
        ("def f(a):\n    if a:\n        x = 1\n        if x:\n            y = 1\n    a(x, y)", [("x", False), ("y", False)]),
        ("def f():\n    global x\n    x = 1\n    return x", []),
        ("x = 1\nclass A:\n    x = x\n    y = x", []),
        ("x = {}\ndef f(a, b=1): ...\nf(1, 2, 3)\nf()\nf(1, c=2)\nf(1, a=1)\nf(*x, b=2)\nf(**x)", [("f", True)] * 4),
        ("def f(a, *, rngs): ...\nf(1)\nf(1, rngs=2)", [("f", True)]),
        ("class A:\n    def __init__(self, n): ...\nA()\nA(1)\nclass B(A): ...\nB(1, 2)", [("A", True), ("B", True)]),
        ("class A:\n    def m(self, n): ...\n    def k(self):\n        return self.m(), self.m(1)", [("m", True)]),
        ("class A:\n    @staticmethod\n    def m(n): ...\n    def k(self):\n        return self.m(1)", []),
        ("class A(object):\n    pass\nA(1)", [("A", True)]),
        ("def f(a): ...\ndef g(f):\n    return f()", []),
        ("def wrap(f): ...\n@wrap\ndef f(a): ...\nf()", []),
        ("import torch\n@torch.no_grad()\ndef f(a): ...\n@torch.jit.ignore\ndef g(a): ...\nf(), g()", [("f", True), ("g", True)]),
    ],
)  # fmt: skip
def test_what_fails_is_found(code: str, expected: list[tuple[str, bool]]) -> None:
    assert sorted(problems(code)) == sorted(expected)


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("print(x)", "print(x)"),
        ("def f(a):\n    for i in a:\n        x = i\n    return x", "def f(a):\n    for j in a:\n        x = j\n    return x"),
        # A nested function that the source does not have reads what its source read around it.
        ("def f(a):\n    if a:\n        x = a\n    return x", "def f(a):\n    def step(a):\n        if a:\n            x = a\n        return x\n    return step(a)"),
        ("class N:\n    def forward(self, a):\n        if a:\n            y = 1\n        return y", "class N:\n    def __call__(self, a):\n        if a:\n            y = 1\n        return y"),
        # So does one that is moved in front of the function.
        ("def f(a):\n    for i in a:\n        x = i\n    return x", "def step(a):\n    def loss(a):\n        for i in a:\n            x = i\n        return x\n    return loss(a)\ndef f(a):\n    return step(a)"),
        ("def f(a): ...\nf()", "def f(a): ...\nf()"),
    ],
)  # fmt: skip
def test_what_the_source_does_too_is_its_own(source: str, code: str) -> None:
    assert not problems(code, source)


def test_a_name_that_only_may_fail_in_the_source_must_not_always_fail() -> None:
    source = "def f(a):\n    if a:\n        x = 1\n    return x"
    assert problems("def f(a):\n    if a:\n        y = 1\n    z = x\n    x = 1\n    return z", source) == [("x", True)]


def test_what_another_function_of_the_source_may_do_is_no_excuse() -> None:
    source = "def f(a):\n    if a:\n        x = 1\n    return x\ndef g(a):\n    return a"
    code = (
        "def step(a):\n    if a:\n        x = 1\n    return x\ndef f(a):\n    return a\ndef g(a):\n    return step(a)"
    )
    assert problems(code, source) == [("x", False)]


NETS = textwrap.dedent("""
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            return self.fc(x)

    def use(x):
        y = torch.cat([x, x])
        return Net()(y)
    """)


def test_what_fails_becomes_a_gap_at_its_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that writes a name which nobody binds, planted."""
    assert not convert(NETS).gaps
    rule = REGISTRY.get("torch.cat")
    assert rule is not None and rule.emit is not None
    emit = rule.emit

    def wrong(call: object) -> object:
        piece = emit(call)  # type: ignore[arg-type]
        return type(piece)(f"nobody_binds({piece.text})")

    monkeypatch.setitem(REGISTRY.rules, "torch.cat", replace(rule, emit=wrong))  # type: ignore[arg-type]
    result = convert(NETS)
    assert [(g.code, g.span.line) for g in result.gaps] == [("defect", 14)]
    assert "nobody_binds" in result.gaps[0].reason and "report" in result.gaps[0].reason
    lines = result.code.splitlines()
    marked = next(i for i, line in enumerate(lines) if "nobody_binds(" in line and "TODO" not in line)
    assert "TODO(t2j)" in lines[marked - 1]
    # The source map still leads to the statement, behind the mark.
    entry = next(e for e in result.source_map if e.source_line == 14)
    assert entry.line == marked + 1


@pytest.mark.parametrize("folder", ["examples", "tests/translate/models", "tests/translate/scripts", "benchmarks"])
def test_nothing_fails_in_our_own_corpora(folder: str) -> None:
    files = [file for file in sorted((ROOT / folder).rglob("*.py")) if "torch" in file.read_text()]
    assert len(files) >= 2
    defects = {}
    for file in files:
        findings = [f for f in convert(file.read_text()).findings if f.code == "defect"]
        if findings:
            defects[file.name] = findings
    assert not defects


@pytest.mark.parametrize(
    ("code", "misfit"),
    [
        ("class A:\n    def __init__(self, *, rngs): ...\nA()", "A is not given 'rngs'"),
        ("def f():\n    class A:\n        def __init__(self, *, rngs): ...\n    A()", "A is not given 'rngs'"),
        ("def f():\n    def g(): A()\n    class A:\n        def __init__(self, *, rngs): ...", "A is not given 'rngs'"),
        ("def f():\n    class A:\n        def g(self): h(1)\n    def h(): ...", "h takes 0 positional arguments, and is given 1"),
        ("def f():\n    class A(B): ...\n    class B:\n        def __init__(self, a): ...\n    A()", "A is not given 'a'"),
        ("def h(): ...\ndef f(h):\n    h(1)", None),
        ("def h(): ...\ndef f():\n    h = f\n    h(1)", None),
        ("def h(): ...\ndef f():\n    def h(a): ...\n    h(1)", None),
        ("def f():\n    def h(): ...\n    def g():\n        nonlocal h\n        h = f\n    h(1)", None),
    ],
)  # fmt: skip
def test_calls_bind_to_what_the_scope_around_them_defines(code: str, misfit: str | None) -> None:
    assert [problem.reason for problem in misfits(ast.parse(code))] == ([misfit] if misfit else [])
