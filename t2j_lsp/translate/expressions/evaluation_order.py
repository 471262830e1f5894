"""What a statement evaluates in front of one of its expressions: an effect isn't to be put before that."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import takewhile

from t2j_lsp.symbols import ancestors, children, walk
from t2j_lsp.translate.rule.facts import Qual, Scalar, Tensor

from .context import Context

_TAKING = frozenset({"next", "input", "pop", "popleft", "popitem", "send", "readline"})
"""Functions and methods whose next call gives another value."""

Parents = Mapping[ast.AST, ast.AST]


def evaluated_before(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    """What is surely done when the evaluation of ``node`` begins, of its statement: ``f(x)`` in ``f(x), g(x)``."""
    inner = node
    for place in ancestors(node, parents):
        yield from takewhile(partial(operator.is_not, inner), _in_order(place))
        if isinstance(place, ast.stmt):
            return
        inner = place


def _in_order(place: ast.AST) -> list[ast.AST]:
    match place:
        case ast.Dict(keys=keys, values=values):
            return [part for pair in zip(keys, values, strict=True) for part in pair if part is not None]
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value) | ast.NamedExpr(value=value):
            return [value, *(part for part in children(place) if part is not value)]
        case _:
            return children(place)


def runs_before(node: ast.expr, context: Context) -> bool:
    """Whether code that may look at a module runs in front of an expression, in its statement."""
    return any(
        _may_look(part, context) for done in evaluated_before(node, context.source.parents) for part in walk(done)
    )


def _may_look(node: ast.AST, context: Context) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "training"
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name) and hasattr(builtins, node.func.id):
        return False
    computes = isinstance(node.func, ast.Attribute) and isinstance(context.fact(node.func.value), Tensor | Scalar)
    return not computes and not isinstance(context.fact(node.func), Qual)


def depends_on_order(node: ast.expr, parents: Parents) -> bool:
    """Whether the value of an expression is another one in front of what its statement evaluates before it."""
    before = [part for done in evaluated_before(node, parents) for part in walk(done)]
    named = {part.target.id for part in before if isinstance(part, ast.NamedExpr)}
    inside = walk(node)
    if named and any(isinstance(part, ast.Name) and part.id in named for part in inside):
        return True
    return any(map(_takes, before)) and any(map(_takes, inside))


def _takes(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _TAKING
        case _:
            return False
