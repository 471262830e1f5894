"""Integers that need more than the 32 bits which JAX has without x64: hashes, codes that are packed by shifts."""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.call_sites import bound_arguments
from t2j_lsp.translate.inference.forward_pass import UnknownParameter
from t2j_lsp.translate.rule.definitions import Function
from t2j_lsp.translate.rule.facts import Tensor, is_number

from .context import Context

_REASON = "this needs integers of 64 bits, as PyTorch's are, and JAX's have 32: convert with x64"
_UNSURE = "if {0} is a tensor, this needs integers of 64 bits, and JAX's have 32: annotate {0}, or convert with x64"
_ITSELF = 2**31
"""From here on a number doesn't fit."""
_FACTOR = 2**24
"""From here on hardly any multiple of a number fits, as in hashes of coordinates."""
_SHIFT = 30
"""Places by which nothing but 0 and 1 can be shifted."""
_OF_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)


def report_wide(ctx: Context, node: ast.BinOp) -> None:
    """Report an operation of a tensor of integers with a number that leaves 32 bits."""
    if ctx.options.x64:
        return
    for tensor, other in ((node.left, node.right), (node.right, node.left)):
        fact, number = ctx.fact(tensor), _number(other)
        handed = None if isinstance(fact, Tensor) else _handed(ctx, tensor)
        if number is None or not isinstance(fact, Tensor) and handed is None:
            continue
        bits = isinstance(node.op, _OF_BITS)
        of_bits = isinstance(tensor, ast.BinOp) and isinstance(tensor.op, _OF_BITS)
        whole = bits or of_bits or isinstance(fact, Tensor) and fact.dtype is not None and "int" in fact.dtype
        wide = number >= _ITSELF or isinstance(node.op, ast.Mult) and number >= _FACTOR
        shifted = isinstance(node.op, ast.LShift) and tensor is node.left and number >= _SHIFT
        if whole and (shifted or wide and not isinstance(node.op, ast.Div | ast.Pow)):
            code, reason = ("refused", _REASON) if handed is None else ("unsure", _UNSURE.format(handed))
            ctx.report.gap(node, type(node.op).__name__, code, reason)
            return


def _handed(ctx: Context, node: ast.expr) -> str | None:
    """The parameter, of which nothing is known, that bits are taken of: ``k``, or that of ``(k >> 16) ^ k``."""
    match node:
        case ast.Name(id=name) if isinstance(ctx.fact(node), UnknownParameter):
            return None if _is_given_numbers(ctx, name) else name
        case ast.BinOp(
            left=left, op=ast.BitAnd() | ast.BitOr() | ast.BitXor() | ast.LShift() | ast.RShift(), right=right
        ):
            return _handed(ctx, left) or _handed(ctx, right)
    return None


def _is_given_numbers(ctx: Context, name: str) -> bool:
    """Whether the file calls the function around, and gives numbers alone for its parameter."""
    info, given = ctx.scope.function, list[ast.expr]()
    for call in (n for n in ctx.source.nodes if isinstance(n, ast.Call)):
        called = ctx.fact(call.func)
        if isinstance(called, Function) and called.info is info:
            given += [value for parameter, value in bound_arguments(call, called.info) if parameter.arg == name]
    return bool(given) and all(is_number(ctx.fact(value)) for value in given)


def _number(node: ast.expr) -> int | None:
    """The size of an integer that is written in the text, or made of such: ``2 ** 31 - 1``, ``1 << 31``."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return abs(value)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _number(inner)
        case ast.BinOp(left=left, op=op, right=right):
            one, other = _number(left), _number(right)
            if one is None or other is None:
                return None
            match op:
                case ast.Pow() if other < 128:
                    return int(one**other)
                case ast.LShift() if other < 128:
                    return one << other
                case ast.Sub():
                    return abs(one - other)
                case ast.Add():
                    return one + other
    return None
