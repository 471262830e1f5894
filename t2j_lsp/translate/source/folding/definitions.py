"""The definition that a helper's text is."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache

from t2j_lsp import symbols
from t2j_lsp.symbols import Comprehension, FunctionNode


@cache
def definition(text: str) -> ast.stmt:
    """The definition that is the whole of a text."""
    return ast.parse(text).body[0]


@cache
def nodes(part: ast.AST) -> tuple[ast.AST, ...]:
    """The nodes of a helper's definition, or of a part of it, in the order of `ast.walk`: they are asked for often."""
    return tuple(symbols.walk(part))


@cache
def members(text: str) -> frozenset[str]:
    """The methods and attributes that a class defines."""
    node = definition(text)
    names = {s.name for s in getattr(node, "body", ()) if isinstance(s, ast.FunctionDef)}
    names |= {n.id for n in nodes(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    return frozenset(names | {n.attr for n in nodes(node) if isinstance(n, ast.Attribute)})


_VALUES = ast.BinOp | ast.Compare | ast.Dict | ast.JoinedStr | ast.List | ast.Set | ast.Tuple
"""Expressions that are never None."""


def is_given(node: ast.expr | None) -> bool:
    """Whether an argument is surely not None."""
    return isinstance(node, _VALUES) or isinstance(node, ast.Constant) and node.value is not None


def annotated(node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr]]:
    """The parameters, functions and variables in a definition that are annotated, and with what."""
    for one in nodes(node):
        for place in (getattr(one, "annotation", None), getattr(one, "returns", None)):
            if isinstance(place, ast.expr):
                yield one, place


def names_in(places: Iterable[ast.expr]) -> set[ast.Name]:
    return {n for place in places for n in symbols.walk(place) if isinstance(n, ast.Name)}


def defaults(node: ast.FunctionDef) -> dict[str, ast.expr]:
    """What the parameters of a function are where no call passes them, for those that have a default."""
    return {a.arg: default for a, default in symbols.defaults(node.args)}


@cache
def free_names(text: str) -> frozenset[str]:
    """The names that a definition reads and that no function or comprehension around binds."""
    return frozenset(_free(definition(text), frozenset()))


def _free(node: ast.AST, around: frozenset[str]) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in around:
        yield node.id
    if isinstance(node, FunctionNode | ast.Lambda | Comprehension):
        around |= bound_in(node)
    for child in symbols.children(node):
        yield from _free(child, around)


def bound_in(scope: ast.AST) -> set[str]:
    """The names that a function or comprehension binds itself."""
    names: set[str] = set()
    todo = list(symbols.children(scope))
    while todo:
        node = todo.pop()
        match node:
            case ast.Name(ctx=ast.Store() | ast.Del()):
                names.add(node.id)
            case ast.arg():
                names.add(node.arg)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
                continue
            case ast.Lambda():
                continue
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                names |= {n.target.id for n in symbols.walk(node) if isinstance(n, ast.NamedExpr)}
                continue
        todo += symbols.children(node)
    return names
