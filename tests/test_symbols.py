"""The table of names: what each scope binds, checked against what the interpreter compiles."""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
import textwrap
from pathlib import Path
from types import CodeType, ModuleType

import pytest

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode, Symbols, bindings, bound_names, named_parameters, scopes_around
from t2j_lsp.translate.source.evaluation import asked_before, evaluated_once

ROOT = Path(__file__).resolve().parents[1]


def of(text: str) -> Symbols:
    text = textwrap.dedent(text)
    return Symbols(text, ast.parse(text))


@pytest.mark.parametrize(
    ("body", "bound"),
    [
        ("import a.b, c as d", {"a", "d"}),
        ("from .m import a, b as c", {"a", "c"}),
        ("try: pass\nexcept E as a: pass", {"a"}),
        ("match p:\n    case {'k': a, **b}: pass\n    case [c, *d] | (c, d) as e: pass", {"a", "b", "c", "d", "e"}),
        ("async def a(): b = 1\nclass c: d = 1", {"a", "c"}),
        ("[a for a in p]\n{b: 1 for b in p}\n(lambda c: c)", set()),
        ("[(a := 1) for b in p]", {"a"}),
        ("with p as (a, [b, *c]): pass\nfor d in p: pass", {"a", "b", "c", "d"}),
        ("global a\na = 1\nb = 1", {"b"}),
        ("def g():\n    nonlocal a\n    a = 1\na = 2", {"a", "g"}),
        ("del a\nb: int\nc += 1\np.d = 1\np[e] = 1", {"a", "b", "c"}),
    ],
)
def test_a_function_binds(body: str, bound: set[str]) -> None:
    symbols = of("def f(p):\n" + textwrap.indent(body, "    "))
    function = symbols.tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    assert symbols.bound(function) == bound | {"p"} == bound_names(function.body) | {"p"}


@pytest.mark.parametrize("part", ["tests/programs", "t2j_lsp/translate/training", "t2j_lsp/lsp", "rules/helpers"])
def test_statements_bind_what_the_interpreter_says_of_their_scope(part: str) -> None:
    functions = 0
    for path in (ROOT / part).rglob("*.py"):
        table = of(path.read_text(encoding="utf-8"))
        for node in ast.walk(table.tree):
            if isinstance(node, FunctionNode):
                starred = (node.args.vararg, node.args.kwarg)
                parameters = {a.arg for a in (*named_parameters(node), *starred) if a is not None}
                assert table.bound(node) == bound_names(node.body) | parameters, f"{path}:{node.lineno}"
                functions += 1
    assert functions > 50


def test_bindings_come_in_the_order_of_the_text_without_what_is_left_out() -> None:
    tree = ast.parse("b = a = 1\nimport x.y, z\nif b:\n    c = [(e := d) for d in b]\ndef f():\n    g = 1\n")
    assert [name for name, _ in bindings(tree.body)] == ["b", "a", "x", "z", "c", "e", "f"]
    outside = bindings(tree.body, without=lambda node: isinstance(node, ast.If))
    assert [name for name, _ in outside] == [
        "b",
        "a",
        "x",
        "z",
        "f",
    ]


def test_the_module_level_has_what_functions_bind_for_it() -> None:
    symbols = of(
        "import a.b\nfrom m import *\ndef f():\n    global c, d\n    c = 1\n    return d\nx = [y for y in a]\n"
    )
    assert symbols.module == {"a", "f", "c", "x"}
    assert symbols.unbound == {"d"}


def test_private_names_of_classes_are_as_they_stand_in_the_text() -> None:
    symbols = of("class _Net:\n    def f(self, __x):\n        __y = __x\n")
    function = symbols.tree.body[0].body[0]  # type: ignore[attr-defined]
    assert symbols.bound(function) == {"self", "__x", "__y"}
    assert {"__x", "__y"} <= symbols.names


def test_imports_tell_what_names_mean_and_leave_out_what_is_assigned_too() -> None:
    symbols = of("""
    import jax.numpy as jnp, os.path
    from .ops import norm
    import math
    def f():
        from torch.nn.functional import pad
        global late
        late = pad
    import late
    math = None
    """)
    function = next(n for n in symbols.tree.body if isinstance(n, ast.FunctionDef))
    assert symbols.imports(None) == {"jnp": {"jax.numpy"}, "os": {"os"}, "norm": {".ops.norm"}}
    assert symbols.imports(function) == {"pad": {"torch.nn.functional.pad"}}


PLACES = """
a = b = c = d = e = 1
def f(a, p=[b for b in c]):
    class C(b):
        d = a
        e = [d for c in d]
        def g(self, q=d):
            global b
            return d, b, lambda e: (e, a)
    return {b: c for c in b for b in c}
"""


def test_a_name_means_the_innermost_scope_that_python_sees() -> None:
    symbols = of(PLACES)
    parents = {child: node for node in ast.walk(symbols.tree) for child in ast.iter_child_nodes(node)}

    def meant(name: str, line: int, column: int) -> str:
        node = next(
            n
            for n in ast.walk(symbols.tree)
            if isinstance(n, ast.Name) and (n.id, n.lineno, n.col_offset) == (name, line, column)
        )
        home = symbols.home(name, scopes_around(node, parents))
        return type(home).__name__ if not isinstance(home, FunctionNode | ast.ClassDef) else home.name

    places = {
        ("b", 3, 12): "ListComp",
        ("c", 3, 23): "NoneType",  # the first iterable stands outside of the comprehension
        ("b", 4, 12): "NoneType",
        ("a", 5, 12): "f",
        ("d", 6, 13): "NoneType",  # a comprehension doesn't see the names of a class
        ("d", 6, 24): "C",
        ("d", 7, 22): "C",
        ("d", 9, 19): "NoneType",
        ("b", 9, 22): "NoneType",
        ("e", 9, 36): "Lambda",
        ("a", 9, 39): "f",
        ("b", 10, 26): "NoneType",
        ("c", 10, 37): "DictComp",
    }
    assert {place: meant(*place) for place in places} == places


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.12 has type parameters first")
def test_type_parameters_are_names_of_what_they_are_of_and_of_methods() -> None:
    symbols = of("class A[T]:\n    def f[U](self, x):\n        return T, U, x\n")
    (cls,) = symbols.tree.body
    assert isinstance(cls, ast.ClassDef)
    (method,) = cls.body
    assert isinstance(method, ast.FunctionDef)
    homes = {name: symbols.home(name, [method, cls]) for name in ("T", "U", "x", "f")}
    assert homes == {"T": cls, "U": method, "x": method, "f": None}


@pytest.mark.parametrize("module", [ast, argparse, inspect, textwrap], ids=lambda m: m.__name__)
def test_functions_of_the_standard_library_bind_what_is_compiled(module: ModuleType) -> None:
    """Compiled code lists its own variables; private names and, from Python 3.12 on, those of comprehensions differ."""
    text = inspect.getsource(module)
    symbols = Symbols(text, ast.parse(text))
    compiled: dict[tuple[str, int], set[str]] = {}
    stack: list[CodeType] = [compile(text, "<text>", "exec")]
    while stack:
        code = stack.pop()
        compiled[code.co_name, code.co_firstlineno] = {*code.co_varnames, *code.co_cellvars}
        stack += [c for c in code.co_consts if isinstance(c, CodeType)]
    functions = [n for n in ast.walk(symbols.tree) if isinstance(n, FunctionNode)]
    assert len(functions) > 5
    for node in functions:
        line = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        targets = (c.target for c in ast.walk(node) if isinstance(c, ast.comprehension))
        other = {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        differ = symbols.bound(node) ^ compiled[node.name, line]
        assert {n for n in differ - other if "__" not in n} == set(), node.name


@pytest.mark.parametrize(
    ("text", "once", "asked"),
    [
        ("g(here)", True, set()),
        ("here if c else x", False, {"c"}),
        ("x if here else c", True, set()),
        ("(here if c else d) + x", False, {"c"}),
        ("x if c and d else here", False, {"c", "d"}),
        ("here and c", True, set()),
        ("a and b or here", False, {"a", "b"}),
        ("a and here and c", False, {"a"}),
        ("[here for c in d]", False, set()),
        ("lambda: here", False, set()),
    ],
)
def test_what_decides_whether_an_expression_runs(text: str, once: bool, asked: set[str]) -> None:
    tree = ast.parse(text)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    place = next(n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "here")
    assert asked_before(place, parents) == asked
    assert evaluated_once(place, parents) == once


def test_kept_walks_are_those_that_were_made() -> None:
    tree = ast.parse("def f(x):\n    return [g(y, key=x) for y in x if y]\n")
    plain = list(symbols.walk(tree))
    with symbols.kept_walks():
        assert next(iter(symbols.walk(tree))) is tree  # one that is not walked to its end
        assert [list(symbols.walk(tree)) for _ in range(3)] == [plain] * 3
        assert list(symbols.walk(tree.body[0])) == plain[1:]
        with symbols.kept_walks():
            tree.body.append(ast.Pass())
            assert len(list(symbols.walk(tree))) == len(plain) + 1
        assert list(symbols.walk(tree)) == plain
    assert len(list(symbols.walk(tree))) == len(plain) + 1
