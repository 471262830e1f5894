"""Before Python 3.12 ``ast`` places the expressions of an f-string wrongly; libcst knows where they stand.

It is asked about each string alone: a file with an f-string in it needn't be parsed by libcst for that.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from t2j_lsp import symbols

from .concrete import Concrete, ReplacementField, Unreadable


class Text(Protocol):
    """What is asked of the text that f-strings stand in."""

    text: str
    starts: list[int]
    nodes: list[ast.AST]

    def offset(self, line: int, byte_column: int) -> int: ...

    def line_of(self, index: int) -> int: ...


def place_expressions(source: Text) -> None:
    """Give every expression inside an f-string the position that it has in the text. Raises Unreadable."""
    inner: set[ast.AST] = set()
    for node in source.nodes:
        if not isinstance(node, ast.JoinedStr) or node in inner:
            continue  # an inner one is placed with the string around it
        inner.update(n for n in symbols.walk(node) if isinstance(n, ast.JoinedStr))
        _place_string(source, node, _fields(source, node))


def _fields(source: Text, node: ast.JoinedStr) -> list[ReplacementField]:
    """The replacement fields of an f-string, in order."""
    first, last = _span(source, node)
    try:
        fields = _fields_of(source.text[first:last])
    except Unreadable as error:
        raise Unreadable(first - 1 + error.at, str(error)) from None
    return [_moved(one, first - 1) for one in fields]


@lru_cache(maxsize=4096)
def _fields_of(text: str) -> tuple[ReplacementField, ...]:
    """The replacement fields of a string in brackets, where it may go over several lines."""
    return Concrete(f"({text})").fields


@lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr:
    """The tree of an expression in brackets, for its positions."""
    return ast.parse(f"({text})", mode="eval").body


def _moved(one: ReplacementField, by: int) -> ReplacementField:
    spec = (one.spec[0] + by, one.spec[1] + by) if one.spec is not None else None
    return replace(one, start=one.start + by, end=one.end + by, spec=spec)


def _place_string(source: Text, node: ast.JoinedStr, fields: list[ReplacementField]) -> None:
    """Place the values of an f-string, which the replacement fields stand in, those of inner strings among them."""
    values = [value for value in node.values if isinstance(value, ast.FormattedValue)]
    for value in values:
        one = fields.pop(0)
        inside: list[ReplacementField] = []
        while fields and fields[0].start < one.end:
            inside.append(fields.pop(0))
        _place(source, value.value, one.start, one.end, inside)
        spec: list[ReplacementField] = []
        while one.spec is not None and fields and fields[0].start < one.spec[1]:
            spec.append(fields.pop(0))
        if isinstance(value.format_spec, ast.JoinedStr):
            _place_string(source, value.format_spec, spec)


def _place(source: Text, node: ast.expr, start: int, end: int, fields: list[ReplacementField]) -> None:
    """Copy positions from a parse of the text in brackets, then place what f-strings in it hold."""
    fresh = _parsed(source.text[start:end])
    line = source.line_of(start)
    before = len(source.text[source.starts[line - 1] : start].encode()) - 1  # the bracket takes a column
    for new, old in zip(symbols.walk(fresh), symbols.walk(node), strict=True):
        if hasattr(new, "lineno"):
            for name, column in (("lineno", "col_offset"), ("end_lineno", "end_col_offset")):
                setattr(old, column, getattr(new, column) + (before if getattr(new, name) == 1 else 0))
                setattr(old, name, line + getattr(new, name) - 1)
    if isinstance(node, ast.Tuple) and fresh.col_offset == 0:
        node.col_offset += 1  # its brackets are those that were added
        node.end_col_offset = (node.end_col_offset or 0) - 1
    for inner in _outer_strings(node):
        first, last = _span(source, inner)
        _place_string(source, inner, [one for one in fields if first <= one.start < last])


def _span(source: Text, node: ast.expr) -> tuple[int, int]:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return source.offset(node.lineno, node.col_offset), source.offset(node.end_lineno, node.end_col_offset)


def _outer_strings(node: ast.AST) -> list[ast.JoinedStr]:
    """The f-strings of an expression that aren't part of another one."""
    if isinstance(node, ast.JoinedStr):
        return [node]
    return [one for child in ast.iter_child_nodes(node) for one in _outer_strings(child)]
