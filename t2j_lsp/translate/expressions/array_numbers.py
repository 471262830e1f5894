"""Numbers out of arrays: ``float(x)`` takes a tensor of one element in PyTorch, in JAX only an array of rank 0.

So does ``"%.3f" % x``.
"""

from __future__ import annotations

import ast
import re

from t2j_lsp.translate.rule.facts import Fact, Tensor
from t2j_lsp.translate.rule.pieces import ATOM, Piece, bracket

from .context import Context
from .handlers import ExpressionRenderer

_FIELD = re.compile(r"%(\(\w+\))?[-+ #0]*(\*|\d*)(?:\.(\*|\d*))?[hlL]?([a-zA-Z%])")
_NUMBERS = frozenset("diouxXeEfFgGc")


def number_of_array(ctx: Context, renderer: ExpressionRenderer, node: ast.Call) -> Piece | None:
    """``x.item()`` for ``float(x)``, and so for int and bool, of an array that has axes, or may have."""
    if len(node.args) != 1 or node.keywords:
        return None
    fact, name = ctx.fact(node.args[0]), ast.unparse(node.func)
    if not isinstance(fact, Tensor) or fact.rank == 0:
        return None
    number = f"{bracket(renderer.argument(node.args[0]), ATOM)}.item()"
    is_float = (fact.dtype or "").removeprefix("torch.").startswith("float")
    return Piece(number if name == "float" and is_float else f"{name}({number})")


def numbers_of_format(ctx: Context, renderer: ExpressionRenderer, node: ast.BinOp) -> None:
    """``"%.3f" % x.item()`` for ``"%.3f" % x``, of an array that has axes, or may have."""
    if not isinstance(node.left, ast.Constant) or not isinstance(node.left.value, str):
        return
    fields = [field for field in _FIELD.finditer(node.left.value) if field[4] != "%"]
    values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
    if len(fields) != len(values) or any(field[1] or "*" in (field[2], field[3]) for field in fields):
        return
    for field, value in zip(fields, values, strict=True):
        fact = ctx.fact(value)
        if field[4] in _NUMBERS and isinstance(fact, Tensor) and fact.rank != 0:
            renderer.put(value, Piece(f"{bracket(renderer.argument(value), ATOM)}.item()", ATOM))


def is_array_with_axes(fact: Fact) -> bool:
    """Whether a value is an array whose rank is known and not 0."""
    return isinstance(fact, Tensor) and bool(fact.rank)
