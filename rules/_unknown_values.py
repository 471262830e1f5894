"""Values of which nothing is known: a name that may mean a tensor, and carry a gradient where PyTorch takes none."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, ListOf, Object, Qual, Scalar, Shape, Tuple
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
