"""Operator precedence: when a piece of rendered code needs brackets in the place it is put."""

from __future__ import annotations

import ast
from dataclasses import dataclass

ANY, ARGUMENT, CONDITIONAL, OR, AND, NOT, COMPARE = 0, 1, 2, 3, 4, 5, 6
BITOR, BITXOR, BITAND, SHIFT, ADD, MULTIPLY, UNARY, POWER, AWAIT, ATOM = 7, 8, 9, 10, 11, 12, 13, 14, 15, 16

_BINARY: dict[type[ast.operator], int] = {
    ast.BitOr: BITOR,
    ast.BitXor: BITXOR,
    ast.BitAnd: BITAND,
    ast.LShift: SHIFT,
    ast.RShift: SHIFT,
    ast.Add: ADD,
    ast.Sub: ADD,
    ast.Mult: MULTIPLY,
    ast.Div: MULTIPLY,
    ast.FloorDiv: MULTIPLY,
    ast.Mod: MULTIPLY,
    ast.MatMult: MULTIPLY,
    ast.Pow: POWER,
}


@dataclass(frozen=True)
class Piece:
    """Rendered code and how tightly its outermost operator binds."""

    text: str
    precedence: int = ATOM


class Part(Piece):
    """A rule's answer for one part of a pair: it stands for the whole ``f(x)[i]``, ``f(x).name`` or used name."""


def enclosed_tuple(text: str) -> bool:
    """Whether a tuple's text is all inside one pair of brackets: ``(a, b)``, not ``(a), (b)``."""
    if not text.startswith("("):
        return False
    try:
        inner = ast.parse(f"({text})", mode="eval").body
    except SyntaxError:
        return False
    return inner.col_offset == 1


def precedence(node: ast.expr) -> int:
    """How tightly the outermost operator of ``node`` binds. An unparenthesised tuple binds loosest."""
    match node:
        case ast.NamedExpr() | ast.Yield() | ast.YieldFrom() | ast.Tuple():
            return ANY
        case ast.Lambda() | ast.Starred() | ast.Slice():
            return ARGUMENT
        case ast.IfExp():
            return CONDITIONAL
        case ast.BoolOp():
            return OR if isinstance(node.op, ast.Or) else AND
        case ast.UnaryOp():
            return NOT if isinstance(node.op, ast.Not) else UNARY
        case ast.Compare():
            return COMPARE
        case ast.BinOp():
            return _BINARY[type(node.op)]
        case ast.Await():
            return AWAIT
        case ast.Constant() if isinstance(node.value, int | float) and node.value < 0:
            return UNARY
        case _:
            return ATOM


def slot(parent: ast.AST, field: str, child: ast.AST | None = None) -> int:
    """The loosest precedence that may stand in ``field`` of ``parent`` without brackets."""
    match parent:
        case ast.BinOp():
            own = _BINARY[type(parent.op)]
            if isinstance(parent.op, ast.Pow):
                return AWAIT if field == "left" else UNARY
            return own if field == "left" else own + 1
        case ast.UnaryOp():
            return NOT if isinstance(parent.op, ast.Not) else UNARY
        case ast.BoolOp():
            return (OR if isinstance(parent.op, ast.Or) else AND) + 1
        case ast.Compare():
            return BITOR
        case ast.Attribute() | ast.Await():
            return ATOM
        case ast.Subscript():
            return ATOM if field == "value" else ANY
        case ast.Call():
            return ATOM if field == "func" else ARGUMENT
        case ast.IfExp():
            return CONDITIONAL if field == "orelse" else OR
        case ast.Starred():
            return BITOR
        case ast.comprehension():
            return OR
        case ast.FormattedValue():
            return CONDITIONAL
        case ast.keyword() | ast.Lambda() | ast.List() | ast.Tuple() | ast.Set() | ast.Dict() | ast.Slice():
            return ARGUMENT
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp() | ast.NamedExpr() | ast.arguments():
            return ARGUMENT
        case ast.withitem() | ast.Assert() | ast.Raise():
            return ARGUMENT
        case _:
            return ANY


def bracket(piece: Piece, needed: int) -> str:
    """The text of ``piece``, in brackets if it binds more loosely than ``needed``."""
    if piece.precedence < needed or (needed > ARGUMENT and _bare_newline(piece.text)):
        return f"({piece.text})"
    if needed == ATOM and piece.text[:1].isdigit() and piece.text.isdigit():
        return f"({piece.text})"
    return piece.text


def breaks_line(text: str) -> bool:
    """Whether a text goes over more than one line."""
    return "\n" in text or "\r" in text


def _bare_newline(text: str) -> bool:
    """Whether a line break stands outside all brackets and strings, so that it only parses inside brackets."""
    if not breaks_line(text):
        return False
    try:
        ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return True
    return False
