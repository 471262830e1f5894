"""Edits of one expression in a text: of an argument, of a function's name, of a number."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from t2j_lsp.contract import Span


@dataclass(frozen=True)
class SpanEdit:
    """Replace what stands at a span."""

    span: Span
    new: str


class ParsedText:
    """A Python text and its tree. Raises SyntaxError where it is none."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self.lines = text.splitlines(keepends=True)

    def _column(self, line: int, offset: int) -> int:
        """A column in code points, of one in the bytes of UTF-8 that ``ast`` counts in."""
        return len(self.lines[line - 1].encode()[:offset].decode(errors="replace"))

    def span(self, node: ast.AST) -> Span:
        """Where a node stands."""
        first, start = node.lineno, node.col_offset  # type: ignore[attr-defined]
        last, end = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        return Span(first, self._column(first, start), last, self._column(last, end))

    def of(self, node: ast.AST) -> str:
        """The text of a node."""
        return ast.get_source_segment(self.text, node) or ""

    def replaced(self, node: ast.AST, new: str) -> SpanEdit:
        """The edit that puts something else in a node's place."""
        return SpanEdit(self.span(node), new)

    def with_argument(self, call: ast.Call, name: str, value: str, position: int | None = None) -> SpanEdit | None:
        """The edit that gives an argument a value: where it has one already, by keyword or at a position, or behind
        the others. None where it can't be told which argument it would be."""
        given = next((k for k in call.keywords if k.arg == name), None)
        if given is not None:
            return self.replaced(given.value, value)
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            return None
        if position is not None and 0 <= position < len(call.args):
            return self.replaced(call.args[position], value)
        arguments: list[ast.AST] = [*call.args, *call.keywords]
        if not arguments:
            span = self.span(call)
            end = Span(span.end_line, span.end_column - 1, span.end_line, span.end_column - 1)
            return SpanEdit(end, f"{name}={value}")
        last = max((self.span(a) for a in arguments), key=lambda s: (s.end_line, s.end_column))
        return SpanEdit(Span(last.end_line, last.end_column, last.end_line, last.end_column), f", {name}={value}")

    def renamed(self, call: ast.Call, name: str) -> SpanEdit | None:
        """The edit that calls another function of the same module, or another method."""
        function = call.func
        if isinstance(function, ast.Name):
            return self.replaced(function, name)
        if not isinstance(function, ast.Attribute):
            return None
        span = self.span(function)
        start = span.end_column - len(function.attr)
        return SpanEdit(Span(span.end_line, start, span.end_line, span.end_column), name)

    def operator(self, node: ast.BinOp, old: str, new: str) -> SpanEdit | None:
        """The edit that puts another operator between two operands of one line."""
        left, right = self.span(node.left), self.span(node.right)
        between = self.lines[left.end_line - 1][left.end_column : right.column]
        if left.end_line != right.line or between.count(old) != 1:
            return None
        start = left.end_column + between.index(old)
        return SpanEdit(Span(right.line, start, right.line, start + len(old)), new)

    def applied(self, edit: SpanEdit) -> str | None:
        """The text after an edit; None where that is no Python any more."""
        span = edit.span
        before = "".join(self.lines[: span.line - 1]) + self.lines[span.line - 1][: span.column]
        after = self.lines[span.end_line - 1][span.end_column :] + "".join(self.lines[span.end_line :])
        text = before + edit.new + after
        try:
            changed = ast.parse(text)
        except (SyntaxError, ValueError):
            return None
        return text if len(changed.body) == len(self.tree.body) else None
