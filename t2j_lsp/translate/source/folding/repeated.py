"""Questions that stand inside the branch of the same question: a function that was put there may ask again.

if rate > 0:                        if rate > 0:
    x = scaled(x, rate)                 x = scaled(x, rate)
    if rate > 0:                        x = shifted(x)
        x = shifted(x)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from .definitions import definition, nodes
from .parts import of_parts

_PLAIN = (
    ast.Name | ast.Load | ast.Constant | ast.Compare | ast.BoolOp | ast.UnaryOp | ast.cmpop | ast.boolop | ast.unaryop
)
_STEP = 4
"""Columns of indentation."""


def without_repeated_questions(text: str) -> str:
    """A definition in which no branch asks what it is the answer to."""
    return of_parts(text, _without_repeated)


@cache
def _without_repeated(text: str) -> str:
    while text.count("if ") > 1 and (inner := next(_repeated(definition(text)), None)) is not None:
        lines = text.splitlines(keepends=True)
        first, last = inner.lineno, inner.end_lineno or inner.lineno
        lines[first - 1 : last] = [line[_STEP:] if line.strip() else line for line in lines[first:last]]
        text = "".join(lines)
    return text


def _repeated(node: ast.AST) -> Iterator[ast.If]:
    """The inner ones of two that ask the same of variables that nothing in the outer one's branch assigns."""
    for outer in (n for n in nodes(node) if isinstance(n, ast.If) and _is_plain(n.test)):
        asked, inside = ast.dump(outer.test), [n for statement in outer.body for n in nodes(statement)]
        stored = {n.id for n in inside if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        stored |= {n.arg for n in inside if isinstance(n, ast.arg)}
        if stored.isdisjoint(n.id for n in nodes(outer.test) if isinstance(n, ast.Name)):
            alike = (n for n in inside if isinstance(n, ast.If) and not n.orelse and ast.dump(n.test) == asked)
            yield from (n for n in alike if n.body[0].lineno > n.lineno)


def _is_plain(test: ast.expr) -> bool:
    return all(isinstance(n, _PLAIN) for n in nodes(test))
