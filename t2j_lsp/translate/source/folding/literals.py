"""Literals in the texts of helpers: which expressions are some, what they are worth, and how they are written."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from typing import Any

import libcst as cst

from .transformer import code

LONGEST = 4
"""Elements of a tuple, and characters of a number that was worked out, that still count as a literal."""
UNKNOWN = object()


def is_literal(node: ast.expr) -> bool:
    """Whether an expression is a literal that may stand anywhere, and more than once."""
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str()):
            return True
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
            return True
        case ast.Tuple(elts=elements) if len(elements) <= LONGEST:
            return all(isinstance(one, ast.Constant | ast.UnaryOp) and is_literal(one) for one in elements)
    return False


def literal(node: ast.expr) -> str:
    """A literal as people write it: ``1e-5``, and strings in double quotes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return json.dumps(node.value, ensure_ascii=False)
    if isinstance(node, ast.Tuple):
        inner = ", ".join(map(literal, node.elts))
        return f"({inner},)" if len(node.elts) == 1 else f"({inner})"
    return re.sub(r"e([+-])0+(?=\d)", lambda m: "e" + m[1].strip("+"), ast.unparse(node))


def value_of(node: cst.BaseExpression) -> Any:
    """The value of a literal; UNKNOWN for anything else."""
    if isinstance(node, cst.Name):
        return {"None": None, "True": True, "False": False}.get(node.value, UNKNOWN)
    if isinstance(node, cst.Integer | cst.Float | cst.SimpleString | cst.UnaryOperation | cst.Tuple):
        try:
            return ast.literal_eval(code(node))
        except (ValueError, SyntaxError):
            return UNKNOWN
    return UNKNOWN


def number_of(node: cst.BaseExpression) -> Any:
    """The value of a literal, or of ``float("inf")``, which is compared with some."""
    text = code(node)
    return float(text[7:-2]) if text in ('float("inf")', 'float("-inf")') else value_of(node)


def boolean(value: bool) -> cst.BaseExpression:
    """True or False as an expression."""
    return cst.Name("True" if value else "False")


def is_one(value: Any) -> bool:
    """Whether a value is the whole number 1."""
    return type(value) is int and value == 1


def parsed_literal(value: Any) -> cst.BaseExpression | None:
    """A value as an expression, if it is one that may stand anywhere and is short."""
    node = (
        ast.parse(repr(value), mode="eval").body if isinstance(value, bool | int | float | str | tuple | None) else None
    )
    if node is None or not is_literal(node) or isinstance(value, float) and len(str(value)) > LONGEST:
        return None
    return literal_node(literal(node))


@cache
def literal_node(code: str) -> cst.BaseExpression:
    """A literal that may stand in any expression."""
    node = cst.parse_expression(code)
    if isinstance(node, cst.UnaryOperation):
        return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return node


def without_brackets(node: cst.BaseExpression) -> cst.BaseExpression:
    """A negative number without the brackets that `literal_node` puts around it."""
    if isinstance(node, cst.UnaryOperation) and value_of(node) is not UNKNOWN:
        return node.with_changes(lpar=[], rpar=[])
    return node
