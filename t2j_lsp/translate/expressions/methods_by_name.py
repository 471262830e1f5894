"""Methods of tensors by a name that only the run tells: JAX's arrays have others, and other keywords."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.inference.forward_pass import dotted, is_known
from t2j_lsp.translate.rule.definitions import Instance, is_module
from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.source.assignments import target_of

from .context import Context

_NOT_KNOWN = (
    "which method of {!r} this is isn't known, and JAX's arrays have others, with other keywords: call each in a branch"
)

_MODE = "Flax's modules have no attribute of this name: read the mode as .training, which t2j converts"


def method_by_name(ctx: Context, node: ast.Call) -> Piece | None:
    """``getattr(x, mode)``, where ``x`` is a tensor, or what it gives is called with ``dim=``: said, and left."""
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value="training"), *_]):
            module = ctx.fact(owner)
            if is_module(module) or not is_known(module) or isinstance(module, Instance) and module.cls.info.mixed_in:
                ctx.report.gap(node, "Module.training", "unsure", _MODE)
            return None
        case ast.Call(func=ast.Name(id="getattr"), args=[owner, name, *_]) if not isinstance(name, ast.Constant):
            fact = ctx.fact(owner)
        case _:
            return None
    by_axes = not is_known(fact) and any(_gives_axes(ctx, call) for call in _calls(ctx, node))
    if isinstance(fact, Tensor) or by_axes:
        ctx.report.gap(node, "getattr", "unsure", _NOT_KNOWN.format(ast.unparse(owner)))
    return None


def _calls(ctx: Context, node: ast.Call) -> Iterator[ast.Call]:
    """The calls of what a ``getattr`` gives, by its name if it gets one."""
    parents = ctx.source.parents
    parent = parents.get(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        yield parent
    target, function = target_of(node, parents), ctx.scope.function
    if isinstance(target, ast.Name) and function is not None:
        calls = (n for n in symbols.walk(function.node) if isinstance(n, ast.Call))
        yield from (n for n in calls if isinstance(n.func, ast.Name) and n.func.id == target.id)


def _gives_axes(ctx: Context, call: ast.Call) -> bool:
    """Whether a call says ``dim=`` or ``keepdim=``, as PyTorch's methods alone do, itself or by a dict of them."""
    spread = {k.value.id for k in call.keywords if k.arg is None and isinstance(k.value, ast.Name)}
    function = ctx.scope.function
    dicts = symbols.walk(function.node) if spread and function is not None else ()
    made = [n.value for n in dicts if isinstance(n, ast.Assign) and not spread.isdisjoint(map(dotted, n.targets))]
    named = (n.arg for place in (call, *made) for n in symbols.walk(place) if isinstance(n, ast.keyword))
    return any(name is not None and name.endswith("dim") for name in named)
