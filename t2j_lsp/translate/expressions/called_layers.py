"""The layer that a call calls, where no other one can stand in its place."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.facts import Layer

from .context import Context

_EXCHANGING = frozenset({"setattr", "add_module", "register_module", "__setattr__"})


def called_layer(ctx: Context, call: ast.expr) -> Layer | None:
    """The layer whose value an expression is, the last one of a Sequential; None where it may be another one.

    The file makes it where its attribute is assigned for the only time, and exchanges no child of a Sequential.
    """
    if not isinstance(call, ast.Call):
        return None
    layer = ctx.fact(call.func)
    if isinstance(call.func, ast.Attribute) and not _is_assigned_once(ctx, call.func.attr):
        return None
    while isinstance(layer, Layer) and layer.name == "torch.nn.Sequential" and layer.items:
        if layer.node is None or layer.node in ctx.inference.indexed:
            return None
        layer = layer.items[-1]
    return layer if isinstance(layer, Layer) and layer.node is not None else None


def _is_assigned_once(ctx: Context, name: str) -> bool:
    stores = [n for n in ctx.source.attributes.get(name, ()) if isinstance(n.ctx, ast.Store)]
    return len(stores) == 1 and _EXCHANGING.isdisjoint(ctx.source.words)
