"""Targets and values of writes into arrays, as they stand in the text."""

from __future__ import annotations

import ast

from t2j_lsp import symbols


def name_of(target: ast.expr) -> str:
    """The name that holds what a target writes into."""
    while isinstance(target, ast.Subscript | ast.Attribute):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def repeatable(value: ast.expr, targets: list[ast.Subscript]) -> bool:
    """Whether a value is the same each time it is written: a constant, or a name that no target changes."""
    value = value.operand if isinstance(value, ast.UnaryOp) else value
    names = {n.id for t in targets for n in symbols.walk(t.value) if isinstance(n, ast.Name)}
    return isinstance(value, ast.Constant) or isinstance(value, ast.Name) and value.id not in names


def last_name(node: ast.expr) -> str:
    """What an attribute is called, or how an expression is written."""
    return node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)


def operands(value: ast.expr) -> list[ast.expr]:
    """What a value is computed from by operators and choices, or the value itself."""
    match value:
        case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
            return [*operands(left), *operands(right)]
        case ast.UnaryOp(operand=operand):
            return operands(operand)
    return [value]


def attribute_of_name(node: ast.expr) -> bool:
    """Whether it is ``name.attribute``."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
