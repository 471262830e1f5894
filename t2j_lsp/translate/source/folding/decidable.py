"""Whether a text has anything that folding would change: asked of `ast`, which costs a tenth of a concrete tree.

A yes may be wrong, and costs time; a no never is. What is asked is what the methods of `constants._Folder` look at.
"""

from __future__ import annotations

import ast
import keyword
import re
from functools import cache

from .definitions import definition, nodes

_LITERAL = ast.Constant | ast.UnaryOp | ast.Tuple


@cache
def is_decidable(text: str) -> bool:
    """Whether a definition may have something in it that its literals decide."""
    return not text.isascii() or any(_may_change(node, text) for node in nodes(definition(text)))


def _may_change(node: ast.AST, text: str) -> bool:
    match node:
        case ast.Compare(left=left, comparators=[right]):
            return _is_known(left) and _is_known(right) or isinstance(left, ast.Call) and _is_word(right)
        case ast.BoolOp(values=values):
            return any(isinstance(one, _LITERAL) for one in values)
        case ast.BinOp(left=left, right=right):
            return _is_known(left) and _is_known(right) or any(_is_word(one) for one in (left, right))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return isinstance(operand, _LITERAL)
        case ast.UnaryOp(operand=ast.Constant()):
            return _is_bracketed(node, text)
        case ast.IfExp(test=test):
            return isinstance(test, _LITERAL)
        case ast.Call(func=ast.Name("isinstance"), args=[first, *_]):
            return isinstance(first, _LITERAL)
        case ast.Subscript(value=ast.Dict() | ast.Tuple()) | ast.Starred(value=ast.Tuple(elts=[])):
            return True
        case ast.JoinedStr(values=values):
            return _is_plain(values) or sum(map(_source(node, text).count, "\"'")) != 2
        case ast.If(test=test, orelse=orelse):
            idle = [type(one) for one in orelse] == [ast.Pass]
            return isinstance(test, _LITERAL) or idle or bool(orelse) and "None." in text or _ends_early(node)
        case _:
            return _ends_early(node)


def _is_known(node: ast.expr) -> bool:
    """Whether an expression may be a literal, or an infinity that is compared with some."""
    return isinstance(node, _LITERAL) or isinstance(node, ast.Call) and ast.unparse(node.func) == "float"


def _is_word(node: ast.expr) -> bool:
    """Whether an expression is True, False or None."""
    return isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))


def _is_bracketed(node: ast.UnaryOp, text: str) -> bool:
    """Whether brackets stand around a negative number, other than those of a call."""
    before = text.splitlines()[node.lineno - 1][: node.col_offset]
    called = re.search(r"(\w+)\($", before)
    return before.rstrip().endswith("(") and (called is None or keyword.iskeyword(called[1]))


def _is_plain(values: list[ast.expr]) -> bool:
    """Whether an f-string has no expression in it, or one that is a literal."""
    fields = [one.value for one in values if isinstance(one, ast.FormattedValue)]
    return not fields or any(isinstance(one, _LITERAL) for one in fields)


def _source(node: ast.expr, text: str) -> str:
    return ast.get_source_segment(text, node) or ""


def _ends_early(node: ast.AST) -> bool:
    """Whether a block goes on behind a statement that leaves it."""
    return any(
        isinstance(one, ast.Return | ast.Raise)
        for name in ("body", "orelse", "finalbody")
        if isinstance(block := getattr(node, name, None), list)
        for one in block[:-1]
    )
