"""Statements that share a line, each on its own: ``loss.backward(); optimizer.step()``.

What is planned in whole lines is planned in such a text as in any other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from itertools import pairwise

from t2j_lsp.contract import Finding

from .rearranged import Edits, Fragment, RearrangedText
from .text import Source


def on_own_lines(source: Source, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which statements among what stays stand on lines of their own; None if they do."""
    edits: Edits = []
    ranges = [(gap.span.line, gap.span.end_line) for gap in gaps]
    for node in source.nodes:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                for unit in units(block):
                    first, last = unit[0].lineno, unit[-1].end_lineno or 0
                    if any(first <= end and begin <= last for begin, end in ranges):
                        edits += _split(source, unit)
    return RearrangedText.of(source.text, edits)


def _split(source: Source, unit: Sequence[ast.stmt]) -> Edits:
    """The edits that give each statement a line of its own."""
    (start, end), indent, begins_line = lines(source, unit)
    if len(unit) == 1 and begins_line:
        return []
    break_ = f"{source.newline}{indent}"
    spans = [source.span(statement) for statement in unit]
    edits = [] if begins_line else [(start, spans[0][0], [Fragment(break_, start, spans[0][0])])]
    for (_, one), (other, _) in pairwise(spans):
        edits.append((one, other, [Fragment(break_, one, other)]))
    if end > spans[-1][1]:
        edits.append((spans[-1][1], end, []))
    return edits


def units(block: Sequence[ast.stmt]) -> list[list[ast.stmt]]:
    """The statements of a block by the lines that they share."""
    out: list[list[ast.stmt]] = []
    for statement in block:
        if out and out[-1][-1].end_lineno == statement.lineno:
            out[-1].append(statement)
        else:
            out.append([statement])
    return out


def lines(source: Source, unit: Sequence[ast.stmt]) -> tuple[tuple[int, int], str, bool]:
    """The range of the text that statements on the same lines take, their indent, and whether they begin a line."""
    start, end = source.span(unit[0])[0], source.span(unit[-1])[1]
    rest = source.text[end : source.starts[unit[-1].end_lineno or 0]] if _has_line_behind(source, unit) else ""
    if rest.lstrip(" \t").startswith(";"):
        end += rest.index(";") + 1
    if source.starts_line(unit[0]):
        return (start, end), source.indent(unit[0].lineno), True
    head = source.indent(unit[0].lineno)
    before = source.text[source.starts[unit[0].lineno - 1] : start]
    return (start - len(before) + len(before.rstrip(" \t")), end), f"{head}    ", False


def _has_line_behind(source: Source, unit: Sequence[ast.stmt]) -> bool:
    return (unit[-1].end_lineno or 0) < len(source.starts)
