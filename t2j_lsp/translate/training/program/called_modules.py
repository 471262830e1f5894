"""The modules that are called on the way to a loss, for an optimizer of which nothing else tells what it updates."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.library import is_loss

from .slice import UpdateSlicer


def called_modules(context: Context, slicer: UpdateSlicer, losses: list[tuple[int, ast.expr]]) -> set[str]:
    """The modules that are called on the way to the losses."""
    names: set[str] = set()
    nodes: list[ast.AST] = [slicer.items[i].node for i in range(losses[-1][0]) if slicer.plain(i)]
    for node in [*nodes, *(loss for _, loss in losses)]:
        for inner in symbols.walk(node):
            if isinstance(inner, ast.Name | ast.Attribute) and isinstance(inner.ctx, ast.Load):
                fact = context.fact(inner)
                parent = context.source.parents.get(inner)
                called = isinstance(parent, ast.Call) and (parent.func is inner or inner in parent.args)
                method = isinstance(parent, ast.Attribute) and isinstance(context.source.parents.get(parent), ast.Call)
                if is_module(fact) and not is_loss(fact) and (called or method) and not _only_a_loss(context, inner):
                    names.add(ast.unparse(inner))
    return names


def _only_a_loss(context: Context, node: ast.expr) -> bool:
    """Whether a module of unknown class is called as losses are: on two values."""
    parent = context.source.parents.get(node)
    name = ast.unparse(node).rpartition(".")[2].lower()
    if not (isinstance(parent, ast.Call) and parent.func is node and len(parent.args) == 2):
        return False
    return any(part in name for part in ("loss", "crit", "cost", "objective"))
