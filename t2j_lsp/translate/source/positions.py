"""Places in a text: columns that count bytes, where the header of a compound statement ends, which of two is run."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from t2j_lsp.symbols import ancestors


def first_line(node: ast.stmt) -> int:
    """The line on which a statement begins, with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def position(node: ast.expr | ast.stmt) -> tuple[int, int]:
    """The line and the column at which a node begins, by which nodes of a text are in order."""
    return node.lineno, node.col_offset


def header_end(owner: ast.AST) -> int:
    """The last line of a compound statement's header; 0 for a module."""
    lines = [getattr(owner, "lineno", 0)]
    for name, value in ast.iter_fields(owner):
        if name in ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                lines += [getattr(n, "end_lineno", 0) or 0 for n in ast.walk(child)]
    return max(lines)


def spans_lines(node: ast.AST) -> bool:
    """Whether a node is a text that goes over lines, whose indent is a part of it."""
    return isinstance(node, ast.Constant | ast.JoinedStr) and node.lineno != node.end_lineno


def byte_columns(line: str) -> list[int]:
    """The byte at which each character of a line starts, and its end."""
    columns = [0]
    for character in line:
        columns.append(columns[-1] + len(character.encode(errors="surrogatepass")))
    return columns


def leaves(block: Sequence[ast.stmt]) -> bool:
    """Whether nothing behind a block is run after it: it ends in a ``return``, an error, or at another round."""
    return bool(block) and isinstance(block[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def are_alternatives(one: ast.AST, other: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether two nodes stand in branches of one condition, of which a run takes one."""
    first, second = ({*ancestors(node, parents), node} for node in (one, other))
    for branching in first & second:
        if isinstance(branching, ast.If):
            sides = [
                [any(s in around for s in part) for part in (branching.body, branching.orelse)]
                for around in (first, second)
            ]
            if sides in ([[True, False], [False, True]], [[False, True], [True, False]]):
                return True
    return False
