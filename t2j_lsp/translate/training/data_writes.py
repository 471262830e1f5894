"""Updates by hand through ``.data``: ``w.data -= lr * w.grad.data``, after which the variable holds the new array."""

from __future__ import annotations

import ast

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.rule.pieces import Piece

from .gradient_forms import SIGNS, is_arithmetic, is_name
from .text import rendered


def written_through_data(node: ast.stmt) -> str:
    """The tensor that ``w.data = w.data - lr * w.grad.data`` and ``w.data -= ...`` give a new value; "" for others."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="data", value=ast.Name(id=name))], value=value):
            return name if is_arithmetic(value) else ""
        case ast.AugAssign(target=ast.Attribute(attr="data", value=ast.Name(id=name)), op=op, value=value):
            return name if type(op) in SIGNS and is_arithmetic(value) else ""
    return ""


def write_data(ctx: Context, node: ast.stmt, name: str, statements: StatementRewriter) -> None:
    """``w = w - lr * w_grad`` for ``w.data = w.data - lr * w.grad.data``, and so for ``w.data -= ...``."""
    assert isinstance(node, ast.Assign | ast.AugAssign)
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and inner.attr == "data":
            held = inner.value
            statements.renderer.put(inner, Piece(name) if is_name(held, name) else statements.renderer.render(held))
    value = rendered(ctx, statements, node.value, node)[1]
    sign = f"{SIGNS[type(node.op)]}=" if isinstance(node, ast.AugAssign) else "="
    ctx.edits.replace(node, f"{name} {sign} {value}")
    ctx.report.converted += 1
