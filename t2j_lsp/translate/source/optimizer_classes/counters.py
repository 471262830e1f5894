"""Numbers that a step counts up once, or once for each group: they go into the state of each parameter."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from t2j_lsp import symbols

from .constructor import OptimizerConstructor
from .unfit import Unfit, need
from .walks import Walk


@dataclass
class StepCounter:
    """One number: its variable, and what it begins with."""

    name: str
    first: ast.expr
    made: ast.If | None = None
    """The statement that makes it where there is none: ``if "step" not in group: group["step"] = 0``."""
    counts_where_made: bool = False
    """Whether that statement counts it up where there is one."""


def read_counters(
    statements: Sequence[ast.stmt], walk: Walk, constructor: OptimizerConstructor, taken: set[str]
) -> dict[str, StepCounter]:
    """The counters of a step, by how they are written. Raises Unfit."""
    out: dict[str, StepCounter] = {}
    inside = {n for s in walk.body for n in symbols.walk(s)}
    for node in (n for s in statements for n in symbols.walk(s)):
        if not isinstance(node, ast.Subscript | ast.Attribute) or isinstance(node.ctx, ast.Load):
            continue
        name = _counted(node, walk.group)
        if name is None:
            continue
        text = ast.unparse(node).replace('"', "'")
        need(node not in inside, f"{text} is counted for each parameter", node)
        if text not in out:
            made = _made(statements, walk.group, name)
            first = made[1] if made is not None else _first(node, name, constructor)
            variable = name if name not in taken else f"{name}_count"
            out[text] = StepCounter(variable, first, *((made[0], made[2]) if made is not None else ()))
    return out


def _counted(node: ast.expr, group: str) -> str | None:
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return name
        case ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=str(name))) if owner == group:
            return name
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id="self"), attr="state"), slice=ast.Constant(value=name)
        ):
            return str(name)
    return None


def _first(node: ast.expr, name: str, constructor: OptimizerConstructor) -> ast.expr:
    if isinstance(node, ast.Attribute) and name in constructor.numbers:
        return constructor.numbers[name]
    raise Unfit(f"what {ast.unparse(node)} begins with", node)


def _made(statements: Sequence[ast.stmt], group: str, name: str) -> tuple[ast.If, ast.expr, bool] | None:
    """The statement that makes a group's counter, what it begins with, and whether it counts it up."""
    for node in statements:
        match node:
            case ast.If(
                test=ast.Compare(
                    left=ast.Constant(value=key), ops=[ast.In() | ast.NotIn() as op], comparators=[ast.Name(id=owner)]
                )
            ) if key == name and owner == group:
                absent, present = (node.orelse, node.body) if isinstance(op, ast.In) else (node.body, node.orelse)
                match absent, present:
                    case [ast.Assign(value=ast.Constant(value=int()) as value)], []:
                        return node, value, False
                    case [ast.Assign(value=ast.Call() as value)], [] if _is_number(value):
                        return node, value, False
                    case [ast.Assign(value=ast.Constant(value=int(value)))], [
                        ast.AugAssign(op=ast.Add(), value=ast.Constant(value=1))
                    ]:
                        return node, ast.Constant(value - 1), True
                raise Unfit(f"how {group}[{name!r}] is counted", node)
    return None


def _is_number(node: ast.Call) -> bool:
    """Whether a call makes a tensor of a number that is written out: ``torch.tensor(0.0)``, ``torch.zeros(1)``."""
    names = {n.id for n in symbols.walk(node) if isinstance(n, ast.Name)}
    return names == {"torch"} and not any(isinstance(n, ast.Call) for n in symbols.walk(node) if n is not node)
