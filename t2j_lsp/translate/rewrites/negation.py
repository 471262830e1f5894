"""The opposite of a condition, as one would write it."""

from __future__ import annotations

import ast

_OPPOSITE: dict[type[ast.cmpop], ast.cmpop] = {
    ast.In: ast.NotIn(), ast.NotIn: ast.In(), ast.Is: ast.IsNot(), ast.IsNot: ast.Is(), ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(), ast.Lt: ast.GtE(), ast.LtE: ast.Gt(), ast.Gt: ast.LtE(), ast.GtE: ast.Lt(),
}  # fmt: skip


def negated(test: ast.expr) -> str:
    """The text of a condition that holds where ``test`` doesn't: of sizes and names, which are ordered."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ast.unparse(operand)
        case ast.Compare(left=left, ops=[op], comparators=comparators):
            return ast.unparse(ast.Compare(left, [_OPPOSITE[type(op)]], comparators))
    return ast.unparse(ast.UnaryOp(ast.Not(), test))
