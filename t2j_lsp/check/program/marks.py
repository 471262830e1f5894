"""Marks in a program that report which of its definitions, branches and top-level statements ran.

A mark is a call at the head of a body, in front of what stands there: ``__t2j_ran__("branch", 12)``. Line numbers are
those of the file, and stay what they were.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

MARK = "__t2j_ran__"
Kind = Literal["definition", "branch", "statement"]
Mark = tuple[str, Kind, int]
"""A file, what ran in it, and its line: of ``def`` or ``class``, of a branch's first statement, of a statement."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Compound = ast.If | ast.Try | ast.TryStar | ast.With


def top_level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a file, those under ``if``, ``try`` and ``with`` each on its own."""
    for statement in body:
        if isinstance(statement, _Compound):
            for inner in _bodies(statement):
                yield from top_level(inner)
        else:
            yield statement


def branches(function: _Function) -> Iterator[list[ast.stmt]]:
    """The bodies within a function that may not run although it does: outer ones before those inside them."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop(0)
        if not isinstance(node, ast.ExceptHandler):
            yield from _bodies(node)
        todo = [*ast.iter_child_nodes(node), *todo]


def marked(tree: ast.Module) -> ast.Module:
    """The program with its marks."""
    return ast.Module(body=_top(tree.body), type_ignores=[])


def _top(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    statements: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, _Compound):
            for inner in _bodies(statement):
                inner[:] = _top(inner)
        elif isinstance(statement, _Function | ast.ClassDef):
            _define(statement)
        elif not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__") and not _is_text(
            statement
        ):
            statements.append(_mark("statement", statement))
        statements.append(statement)
    return statements


def _define(node: _Function | ast.ClassDef) -> None:
    """Puts marks into a definition, its methods among them. A docstring stays in front."""
    if isinstance(node, ast.ClassDef):
        for statement in node.body:
            if isinstance(statement, _Function | ast.ClassDef):
                _define(statement)
    else:
        for body in list(branches(node)):
            body.insert(1 if isinstance(body[0], ast.Expr) and _is_text(body[0]) else 0, _mark("branch", body[0]))
    mark = ast.copy_location(_call("definition", node.lineno), node.body[0])
    node.body.insert(1 if _is_text(node.body[0]) else 0, mark)


def _bodies(node: ast.AST) -> list[list[ast.stmt]]:
    """The statement lists right inside a node, but for those of a class."""
    if isinstance(node, ast.ClassDef):
        return []
    blocks = [getattr(node, part, None) for part in ("body", "orelse", "finalbody")]
    blocks += [handler.body for handler in getattr(node, "handlers", ())]
    return [body for body in blocks if isinstance(body, list) and body]


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _mark(kind: Kind, statement: ast.stmt) -> ast.stmt:
    return ast.copy_location(_call(kind, statement.lineno), statement)


def _call(kind: Kind, line: int) -> ast.stmt:
    arguments: list[ast.expr] = [ast.Constant(kind), ast.Constant(line)]
    return ast.Expr(ast.Call(ast.Name(MARK, ast.Load()), arguments, []))


def marks_of(ran: Iterable[Mark]) -> set[Mark]:
    """The marks that a worker says ran."""
    return {(path, kind, line) for path, kind, line in ran}


class Ran:
    """Collects what the marks of all files report."""

    def __init__(self) -> None:
        self.marks: set[Mark] = set()

    def reporter(self, path: str) -> Callable[[Kind, int], None]:
        """What the marks in a file call."""
        return lambda kind, line: self.marks.add((path, kind, line))

    def reported(self) -> list[Mark]:
        """The marks in their order."""
        return sorted(self.marks)


RAN = Ran()
"""What ran since this process loaded a program last."""
