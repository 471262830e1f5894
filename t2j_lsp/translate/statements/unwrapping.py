"""Takes the header off a block, so that its statements stand in its place."""

from __future__ import annotations

import ast
from functools import lru_cache

from t2j_lsp.translate.expressions.context import Edits
from t2j_lsp.translate.source.text import Source


def unwrap(edits: Edits, node: ast.stmt, body: list[ast.stmt]) -> None:
    """Replace a compound statement by its body, one level less indented."""
    source = edits.source
    first, last = body[0], body[-1]
    decorators = getattr(first, "decorator_list", None)
    first_line = min([first.lineno, *(d.lineno for d in decorators or ())])
    start = source.starts[node.lineno - 1]
    body_start = _comments_above(source, first_line, node.lineno)
    assert last.end_lineno is not None and node.end_lineno is not None
    width = len(source.indent(first.lineno)) - len(source.indent(node.lineno))
    edits.drop(start, source.starts[body_start - 1], inserted=False)  # a block around it may have lost its header
    edits.add(start, source.starts[body_start - 1], "", -1)
    if last.end_lineno < node.end_lineno:
        # Between the ends of two lines: what is put behind either statement stays.
        edits.add(edits.line_end(last), edits.line_end(node), "", -1)
    _dedent(edits, body_start, last.end_lineno, width)


def _comments_above(source: Source, line: int, header: int) -> int:
    """The first of the comment lines that stand directly above ``line``, inside the block."""
    while line - 1 > header and source.line_text(line - 1).lstrip().startswith("#"):
        line -= 1
    return line


def _dedent(edits: Edits, first: int, last: int, width: int) -> None:
    inside = _string_lines(edits.source)
    for line in range(first, last + 1):
        if line in inside or width <= 0 or len(edits.source.indent(line)) < width:
            continue
        start = edits.source.starts[line - 1]
        done = edits.dedented.get(line, 0)
        edits.add(start + done, start + done + width, "", -2)
        edits.dedented[line] = done + width


@lru_cache(maxsize=1)
def _string_lines(source: Source) -> set[int]:
    """Lines that begin inside a string literal, whose indentation is part of its value."""
    lines: set[int] = set()
    for node in source.nodes:
        if isinstance(node, ast.Constant | ast.JoinedStr) and (node.end_lineno or 0) > node.lineno > 0:
            if isinstance(node, ast.JoinedStr) or isinstance(node.value, str | bytes):
                lines.update(range(node.lineno + 1, (node.end_lineno or 0) + 1))
    return lines
