"""Before Python 3.12 ``ast`` places the expressions of an f-string wrongly; this puts them right."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .text import Source

_LITERAL = re.compile(r"(?P<prefix>[A-Za-z]*)(?P<quote>\"\"\"|'''|\"|')")


def repair_positions(source: Source) -> None:
    """Give every expression inside an f-string its true position; where that fails it gets none.

    A node without a position (``lineno`` 0) is never rewritten.
    """
    for node in ast.walk(source.tree):
        if isinstance(node, ast.JoinedStr):
            _repair(source, node)


def _repair(source: Source, node: ast.JoinedStr) -> None:
    start = source.offset(node.lineno, node.col_offset)
    assert node.end_lineno is not None and node.end_col_offset is not None
    end = source.offset(node.end_lineno, node.end_col_offset)
    values = [v for v in node.values if isinstance(v, ast.FormattedValue)]
    spans = list(_replacement_fields(source.text[start:end]))
    matched = len(spans) == len(values)
    for index, value in enumerate(values):
        placed = False
        if matched:
            first, last = spans[index]
            placed = _place(source, value.value, start + first, source.text[start + first : start + last])
        if not placed:
            for inner in ast.walk(value):
                _forget(inner)
        for inner in ast.walk(value.format_spec) if value.format_spec else ():
            _forget(inner)


def _forget(node: ast.AST) -> None:
    if isinstance(node, ast.expr):
        node.lineno = node.end_lineno = 0


def _place(source: Source, node: ast.expr, at: int, text: str) -> bool:
    """Copy positions from a fresh parse of ``text``, which stands at index ``at``."""
    try:
        fresh = ast.parse(f"({text})", mode="eval").body
    except SyntaxError:
        return False
    if ast.dump(fresh) != ast.dump(node) or "\n" in text or "\r" in text:
        return False
    line = source.line_of(at)
    byte_start = len(source.text[source.starts[line - 1] : at].encode())
    for new, old in zip(ast.walk(fresh), ast.walk(node), strict=True):
        if hasattr(new, "lineno"):
            # The added bracket shifts the parse by one column.
            old.lineno = old.end_lineno = line  # type: ignore[attr-defined]
            old.col_offset = byte_start + new.col_offset - 1  # type: ignore[attr-defined]
            old.end_col_offset = byte_start + new.end_col_offset - 1  # type: ignore[attr-defined]
    return True


def _replacement_fields(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of the expression in each ``{...}`` of (implicitly concatenated) string literals."""
    position = 0
    while position < len(text):
        match = _LITERAL.match(text, position)
        if match is None:
            position += 1
            continue
        quote, prefix = match["quote"], match["prefix"].lower()
        position = match.end()
        while position < len(text) and not text.startswith(quote, position):
            if (
                text[position] == "\\"
                and "r" not in prefix
                or "f" in prefix
                and text.startswith(("{{", "}}"), position)
            ):
                position += 2
            elif "f" in prefix and text[position] == "{":
                end, stop = _field_end(text, position + 1)
                yield position + 1, end
                position = stop
            else:
                position += 1
        position += len(quote)


def _field_end(text: str, position: int) -> tuple[int, int]:
    """End of the expression, and of its whole field, that starts at ``position``."""
    depth = 0
    quote = ""
    end = -1
    while position < len(text):
        char = text[position]
        if quote:
            if char == quote:
                quote = ""
        elif char in "'\"" and end < 0:
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]" or (char == "}" and depth):
            depth -= 1
        elif depth == 0 and end < 0 and char in "!:=" and not _operator(text, position):
            end = position
        elif char == "}":
            return (end if end >= 0 else position), position + 1
        position += 1
    return position, position


def _operator(text: str, position: int) -> bool:
    """Whether ``!`` or ``=`` here belongs to a comparison."""
    char, following, before = text[position], text[position + 1 : position + 2], text[position - 1 : position]
    if char == "!":
        return following == "="
    if char == "=":
        return following == "=" or before in "=!<>"
    return False
