"""Updates by hand through ``.data``: ``w.data -= lr * w.grad.data``, after which the variable holds the new array."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.symbols import named_parameters
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.inference.call_sites import bound_arguments
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.training.program.gradient_forms import SIGNS, is_name
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.text import rendered

_SAME, _VIEWS = names_with(Trait.SAME_TENSOR), names_with(Trait.VIEW)


def _shared(value: ast.expr, views: bool) -> ast.Name | None:
    """The variable that a value may be another name for, or with ``views`` share its elements with: ``x.detach()``."""
    match value:
        case ast.Name():
            return value
        case ast.Call(func=ast.Attribute(attr="Variable") | ast.Name(id="Variable"), args=[held, *_]):
            return _shared(held, views) if views else None
        case ast.Call(func=ast.Attribute(attr=attr, value=held)) | ast.Attribute(attr=attr, value=held):
            return _shared(held, views) if attr in _SAME or views and (attr in _VIEWS or attr == "data") else None
        case ast.Subscript(value=held):
            return _shared(held, views) if views else None
    return None


def written_through_data(node: ast.stmt) -> str:
    """The tensor that ``w.data = w.data - lr * w.grad.data`` and ``w.data -= ...`` give a new value; "" for others."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="data", value=ast.Name(id=name))]):
            return name
        case ast.AugAssign(target=ast.Attribute(attr="data", value=ast.Name(id=name)), op=op):
            return name if type(op) in SIGNS else ""
    return ""


def is_seen_outside(objects: Objects, scope: VariableScope, node: ast.stmt, name: str) -> bool:
    """Whether what is written through ``.data`` reaches a tensor that something outside of the function holds."""
    function = scope.function
    if function is None or name not in objects.ctx.source.symbols.bound(function.node):
        return False
    views = not isinstance(node, ast.Assign)
    values = objects.assigned(name, scope)
    held = [owner for value in values if (owner := _shared(value, views)) is not None]
    if any(a.arg == name for a in named_parameters(function.node)) and not values:
        held.append(ast.Name(name, ast.Load()))
    calls = list(objects.calls(function))
    for owner in held:
        given = [v for call in calls for p, v in bound_arguments(call, function) if p.arg == owner.id]
        made_for_it = all(isinstance(v, ast.Call | ast.BinOp) for v in given)
        if not calls or len(given) != len(calls) or not made_for_it:
            return True
    return False


def write_data(ctx: Context, node: ast.stmt, name: str, statements: StatementRewriter) -> None:
    """``w = w - lr * w_grad`` for ``w.data = w.data - lr * w.grad.data``, and so for ``w.data -= ...``."""
    assert isinstance(node, ast.Assign | ast.AugAssign)
    for inner in symbols.walk(node):
        if isinstance(inner, ast.Attribute) and inner.attr == "data":
            held = inner.value
            statements.renderer.put(inner, Piece(name) if is_name(held, name) else statements.renderer.render(held))
    value = rendered(ctx, statements, node.value, node)[1]
    sign = f"{SIGNS[type(node.op)]}=" if isinstance(node, ast.AugAssign) else "="
    ctx.edits.replace(node, f"{name} {sign} {value}")
    ctx.report.count_converted()
