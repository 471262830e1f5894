"""Models of libraries that are made for what they say of themselves, and are given no arrays.

``len(timm.create_model(name).feature_info.channels())``, mostly in two statements.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.rule.library import Trait, names_with

from .context import Context
from .torch_only import library_model, stays_torch

_ONLY_ASKED = "{} stays PyTorch's: the model is asked for what describes it, and is given no arrays"
_DESCRIBING = names_with(Trait.DESCRIBES)
_ASKING = frozenset({"getattr", "hasattr"})


def report_what_stays(ctx: Context, node: ast.Call) -> None:
    """Say of a call that it stays PyTorch's: a gap, or a note where nothing of it meets arrays."""
    if (stays := stays_torch(ctx, node)) is None:
        return
    name, reason = stays
    if library_model(ctx, node) is not None and _is_only_asked(ctx, node):
        ctx.report.note(node, name, "torch-only", _ONLY_ASKED.format(name))
    else:
        ctx.report.gap(node, name, "torch-only", reason)


def _is_only_asked(ctx: Context, node: ast.Call) -> bool:
    """Whether a model is kept under a name of a function alone, of which nothing but such attributes is read."""
    parents = ctx.source.parents
    match parents.get(node):
        case ast.Assign(targets=[ast.Name(id=name)]):
            function = symbols.nearest(ast.FunctionDef, node, parents)
        case _:
            return False
    if function is None or name in symbols.parameter_names(function):
        return False
    nodes = list(symbols.walk(function))
    if any(isinstance(n, ast.Global | ast.Nonlocal) and name in n.names for n in nodes):
        return False
    uses = [n for n in nodes if isinstance(n, ast.Name) and n.id == name]
    reads = [n for n in uses if isinstance(n.ctx, ast.Load)]
    plain = reads and all(isinstance(n.ctx, ast.Load | ast.Store) for n in uses)
    return bool(plain) and all(_asks(ctx, n) for n in reads)


def _asks(ctx: Context, read: ast.Name) -> bool:
    """``model.feature_info``, ``getattr(model, "output_fmt", None)``."""
    match ctx.source.parents.get(read):
        case ast.Attribute(attr=name, ctx=ast.Load()):
            return name in _DESCRIBING
        case ast.Call(func=ast.Name(id=asking), args=[owner, ast.Constant(value=str(name)), *_]) if owner is read:
            return asking in _ASKING and name in _DESCRIBING
    return False
