"""``copy.deepcopy(self.head)`` where a module runs: a copy's parameters are others, and gradients end at them."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.inference.module_methods import running_methods
from t2j_lsp.translate.rule.definitions import FunctionInfo, is_module, layer_names
from t2j_lsp.translate.rule.facts import AnyModule, Qual, is_tensor
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.source.assignments import target_of

from .context import Context
from .copying import Copier
from .handlers import ExpressionRenderer

DEEP_COPY = "copy.deepcopy"
_WALKS = ("parameters", "named_parameters")
_UNSURE = "gradients end at a copy's parameters, and whether this has some isn't known: jax.lax.stop_gradient ends them"


def copied(ctx: Context, renderer: ExpressionRenderer, copier: Copier, node: ast.Call) -> Piece | None:
    """The copy without gradients; None where nothing is differentiated, or what is copied holds no arrays."""
    function = ctx.scope.function
    if function is None or function.name == "__init__" or len(node.args) != 1 or node.keywords:
        return None
    fact, target = ctx.fact(node.args[0]), target_of(node, ctx.source.parents)
    name = target.id if isinstance(target, ast.Name) else ""
    is_called = bool(name) and _calls(function, name)
    if not is_called and not (_runs(ctx, function) and (is_module(fact) or is_tensor(fact))):
        return None
    if any(one in LAYERS and LAYERS[one].function for one in layer_names(fact)):
        if isinstance(fact, AnyModule):
            ctx.report.gap(node, DEEP_COPY, "unsure", _UNSURE)
        return None  # a function in JAX, which holds nothing
    if not is_module(fact) and not is_tensor(fact) and not _is_walked(function, name):
        ctx.report.gap(node, DEEP_COPY, "unsure", _UNSURE)
        return None
    return Piece(f"{renderer.need('jax')}.lax.stop_gradient({copier.copy_arguments(node).text})")


def _is_walked(function: FunctionInfo, name: str) -> bool:
    """Whether a function walks over the parameters of what it has under a name."""
    return any(
        isinstance(n, ast.Attribute) and n.attr in _WALKS and isinstance(n.value, ast.Name) and n.value.id == name
        for n in symbols.walk(function.node)
    )


def is_local_copy(ctx: Context, function: FunctionInfo | None, module: ast.expr, freezing: ast.stmt) -> bool:
    """Whether a module is a copy that a function makes without gradients, calls, and keeps for itself."""
    if function is None or function.name == "__init__" or not isinstance(module, ast.Name):
        return False
    frozen = {*symbols.walk(freezing)}
    uses = [n for n in symbols.walk(function.node) if isinstance(n, ast.Name) and n.id == module.id and n not in frozen]
    made = [n for n in uses if isinstance(n.ctx, ast.Store)]
    for use in uses:
        parent = ctx.source.parents.get(use)
        if use in made:
            value = parent.value if isinstance(parent, ast.Assign) and parent.targets == [use] else None
            if not isinstance(value, ast.Call) or ctx.fact(value.func) != Qual(DEEP_COPY):
                return False
        elif not symbols.is_callee(use, ctx.source.parents) and not _sets_mode(ctx, parent):
            return False
    return bool(made) and len(uses) > len(made)


def _sets_mode(ctx: Context, node: ast.AST | None) -> bool:
    """``frozen.eval``, called."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr in ("eval", "train")
        and symbols.is_callee(node, ctx.source.parents)
    )


def _calls(function: FunctionInfo, name: str) -> bool:
    """Whether a function calls what it has under a name."""
    calls = (n.func for n in symbols.walk(function.node) if isinstance(n, ast.Call))
    return any(isinstance(func, ast.Name) and func.id == name for func in calls)


def _runs(ctx: Context, function: FunctionInfo) -> bool:
    """Whether a method runs when its module is called."""
    classes = (one for one in ctx.inference.classes.values() if function.owner in one.ancestry())
    return function.runs_in_module and any(function in running_methods(one) for one in classes)
