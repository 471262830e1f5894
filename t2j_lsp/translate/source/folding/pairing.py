"""Attributes that an object is given below each other, given in one statement.

    self.weight_hh = uniform(rows, size)        self.weight_hh, self.bias_hh = uniform(rows, size), uniform(rows)
    self.bias_hh = uniform(rows)

Only where no value reads the object, which has the one attribute and not yet the other in between.
"""

from __future__ import annotations

import ast
from functools import cache

from .definitions import definition, nodes
from .parts import of_parts

MOST = 4
"""Attributes that one statement gives."""
WIDEST = 100
"""How long such a line gets: a list of values is not read as a sentence is."""

_Pairs = list[tuple[str, str, str]]
"""The attributes that a statement gives, the values, and what is called for these."""


def paired(text: str, width: int) -> str:
    """A definition with such statements put together."""
    return of_parts(text, lambda part: _paired(part, min(width, WIDEST)))


@cache
def _paired(text: str, width: int) -> str:
    lines = text.splitlines(keepends=True)
    bodies = (getattr(n, "body", None) for n in nodes(definition(text)) if isinstance(n, ast.FunctionDef | ast.If))
    for body in sorted((b for b in bodies if isinstance(b, list)), key=lambda b: -b[0].lineno):
        for first, last, pairs in reversed(_groups(text, body, width)):
            lines[first.lineno - 1 : last.lineno] = [f"{' ' * first.col_offset}{_statement(pairs)}\n"]
    return "".join(lines)


def _groups(text: str, body: list[ast.stmt], width: int) -> list[tuple[ast.stmt, ast.stmt, _Pairs]]:
    """The first and last statements of those that become one, and what it gives."""
    groups: list[tuple[ast.stmt, ast.stmt, _Pairs]] = []
    open_until = 0
    for statement in body:
        pairs = _given(text, statement)
        if pairs and open_until == statement.lineno:
            first, _, before = groups[-1]
            together = [*before, *pairs]
            alike = len({made for *_, made in together if made}) <= 1
            alike &= len({target.partition(".")[0] for target, *_ in together}) == 1
            if alike and len(together) <= MOST and first.col_offset + len(_statement(together)) <= width:
                groups[-1] = (first, statement, together)
                open_until = statement.lineno + 1
                continue
        open_until = statement.lineno + 1 if pairs else 0
        if pairs:
            groups.append((statement, statement, pairs))
    return [(first, last, pairs) for first, last, pairs in groups if first is not last]


def _statement(pairs: _Pairs) -> str:
    targets, values, _ = zip(*pairs, strict=True)
    return f"{', '.join(targets)} = {', '.join(values)}"


def _given(text: str, statement: ast.stmt) -> _Pairs:
    """The attributes that a line gives to an object, if it does nothing else and reads nothing of the object."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            pass
        case ast.Assign(targets=[ast.Attribute() as target], value=value):
            targets, values = [target], [value]
        case _:
            return []
    owners = {n.value.id for n in targets if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)}
    alone = statement.lineno == statement.end_lineno and "#" not in text.splitlines()[statement.lineno - 1]
    if not alone or len(owners) != 1 or not all(isinstance(n, ast.Attribute) for n in targets):
        return []
    inside = [n for value in values for n in nodes(value)]
    if any(isinstance(n, ast.Name) and n.id in owners for n in inside):
        return []
    if any(isinstance(n, ast.Starred | ast.Lambda | ast.NamedExpr | ast.IfExp) for n in inside):
        return []
    parts = zip(targets, values, strict=True)
    return [
        (ast.get_source_segment(text, a) or "", ast.get_source_segment(text, b) or "", _made_by(b)) for a, b in parts
    ]


def _made_by(value: ast.expr) -> str:
    """What is called for a value, with the number of its arguments; nothing for what is no call."""
    return f"{ast.unparse(value.func)}/{len(value.args)}" if isinstance(value, ast.Call) else ""
