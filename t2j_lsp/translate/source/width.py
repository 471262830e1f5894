"""How long a line of the output may be: as long as the longest of code in its source, within bounds."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

MIN_WIDTH, MAX_WIDTH = 88, 120


def line_limit(lines: Iterable[str]) -> int:
    """The limit for a source of these lines. Comments and strings that stand alone say nothing."""
    return min(
        MAX_WIDTH, max([MIN_WIDTH, *(len(line) for line in lines if not line.lstrip().startswith(("#", '"', "'")))])
    )


def lines_with(lines: Sequence[str], node: ast.expr, call: str, limit: int) -> int:
    """On how many lines a call stands in the place of a node of the source, broken at its bracket if it is too long."""
    before = lines[node.lineno - 1].encode()[: node.col_offset].decode()
    after = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset :].decode()
    if len(before) + len(call) + len(after) <= limit:
        return 1
    arguments = call[call.index("(") + 1 : -1]
    indent = len(before) - len(before.lstrip()) + 4
    if indent + len(arguments) <= limit:
        return 3
    made = ast.parse(call, mode="eval").body
    return 2 + (len(made.args) + len(made.keywords) if isinstance(made, ast.Call) else 0)


def lines_of_signature(line: str, more: str, limit: int) -> int:
    """On how many lines a signature stands that is one line of the source, ``def f(a, b):``, with more parameters."""
    if len(line) + len(more) <= limit:
        return 1
    indent = len(line) - len(line.lstrip()) + 4
    inner = line[line.index("(") + 1 : line.rindex(")")] + more
    return 3 if indent + len(inner) <= limit else 2 + inner.count(", ") + 1
