"""Values of which nothing is known: a name that may mean a tensor, and carry a gradient where PyTorch takes none."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, ListOf, Object, Qual, Scalar, Shape, Tuple, is_number
from t2j_lsp.translate.rule.record import Call


def may_be_tensor(node: ast.expr, call: Call) -> bool:
    """Whether nothing is known of a value that is named or computed."""
    return isinstance(node, ast.Name | ast.Call | ast.Subscript) and call.site.fact(node) == UNKNOWN


def is_unknown_parameter(fact: Fact) -> bool:
    """Whether it is what is known of a parameter that nothing is known of."""
    return fact != UNKNOWN and not isinstance(fact, Scalar | ListOf | Tuple | Shape | Object | Qual)


def operands(node: ast.expr) -> Iterator[ast.Name]:
    """The names that arithmetic computes with: those of ``m + 2 * n``."""
    match node:
        case ast.Name():
            yield node
        case ast.UnaryOp(operand=inner):
            yield from operands(inner)
        case ast.BinOp(left=left, right=right):
            yield from operands(left)
            yield from operands(right)


def is_handed(node: ast.expr | None, call: Call) -> bool:
    """Whether a value is a parameter that nothing is known of, an item of one, or computed or listed from such.

    ``2 * n``, ``xs[0]``, ``[a, b]``, ``x`` of ``for x in xs``.
    """
    match node:
        case ast.Name():
            fact = call.site.fact(node)
            return is_unknown_parameter(fact) if fact != UNKNOWN else is_handed(call.site.walked(node), call)
        case ast.Subscript(value=value, slice=index):
            held = call.site.fact(value)
            return is_number(call.site.fact(index)) and (held.is_open or held == UNKNOWN) and is_handed(value, call)
        case ast.UnaryOp(operand=inner) | ast.ListComp(elt=inner):
            return is_handed(inner, call)
        case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
            return is_handed(left, call) or is_handed(right, call)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return any(is_handed(item, call) for item in items)
    return False
