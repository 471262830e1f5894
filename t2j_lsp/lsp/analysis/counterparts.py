"""Where a line of PyTorch stands in its conversion, and a line of the conversion in the PyTorch it came from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp.contract import Span
from t2j_lsp.lsp.positions import split_lines

from .intact import intact

_RENAMED = {"forward": "__call__", "__call__": "forward"}
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Assignment = ast.Assign | ast.AnnAssign | ast.AugAssign


def counterpart(text: str, other: str, line: int) -> Span | None:
    """The place in ``other`` of what line ``line`` (from 1) of ``text`` assigns, or else of the definition around it.

    Definitions are found by their names; a method ``forward`` is ``__call__`` in JAX. What doesn't parse is left out.
    """
    try:
        scope: ast.AST = intact(text, broken=True).tree
        other_scope: ast.AST = intact(other, broken=True).tree
    except SyntaxError:
        return None
    place: Definition | Assignment | None = None
    while (inner := _around(scope, line)) is not None:
        match = _named(other_scope, inner.name)
        if match is None:
            break
        scope, other_scope, place = inner, match, match
    if inner is None:
        place = _assigned(scope, other_scope, line) or place
    return _span(place, other) if place is not None else None


def _statements(scope: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a scope, in order; of the definitions in it only themselves."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, ast.stmt):
            yield child
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case) and not isinstance(child, Definition):
            yield from _statements(child)


def _around(scope: ast.AST, line: int) -> Definition | None:
    """The definition in a scope that holds a line, decorators included."""
    for one in _statements(scope):
        if isinstance(one, Definition):
            first = min([one.lineno, *(d.lineno for d in one.decorator_list)])
            if first <= line <= (one.end_lineno or first):
                return one
    return None


def _named(scope: ast.AST, name: str) -> Definition | None:
    definitions = {one.name: one for one in _statements(scope) if isinstance(one, Definition)}
    return definitions.get(name) or definitions.get(_RENAMED.get(name, ""))


def _assigned(scope: ast.AST, other_scope: ast.AST, line: int) -> Assignment | None:
    """The assignment to the same names, where both scopes have as many of these."""
    at = next((one for one in _assignments(scope) if one.lineno <= line <= (one.end_lineno or 0)), None)
    if at is None:
        return None
    same, matches = (
        [one for one in _assignments(each) if _targets(one) == _targets(at)] for each in (scope, other_scope)
    )
    return matches[same.index(at)] if len(matches) == len(same) else None


def _assignments(scope: ast.AST) -> Iterator[Assignment]:
    return (one for one in _statements(scope) if isinstance(one, Assignment))


def _targets(node: Assignment) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return " = ".join(map(ast.unparse, targets))


def _span(node: Definition | Assignment, text: str) -> Span:
    """The first line of a place, from its first character."""
    line = split_lines(text.removeprefix("\ufeff"))[node.lineno - 1].rstrip("\r\n")
    column = len(line.encode()[: node.col_offset].decode())
    return Span(node.lineno, column, node.lineno, len(line))
