"""Layers that a module stands around: ``spectral_norm(nn.Linear(3, 4))`` is the layer, and has it inside in Flax."""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.rngs import build_methods
from t2j_lsp.translate.rule.facts import Fact, Layer, Qual
from t2j_lsp.translate.rule.library import Trait, names_with

from .context import Context

INSIDE = "layer_instance"
"""Flax's name for the layer that a module of its own stands around."""


def is_wrapped(ctx: Context, owner: Fact) -> bool:
    """Whether a layer is built as the argument of what wraps it."""
    if not isinstance(owner, Layer) or owner.node is None or not names_with(Trait.WRAPS) & ctx.inference.mentioned:
        return False
    around = ctx.source.parents.get(owner.node)
    fact = ctx.fact(around.func) if isinstance(around, ast.Call) else None
    return isinstance(fact, Qual) and fact.name in names_with(Trait.WRAPS)


def is_being_built(ctx: Context) -> bool:
    """Whether the code at hand runs before any forward pass: in a constructor, or in what only constructors call."""
    function = ctx.scope.function
    if function is None or function.owner is None:
        return False
    return function.name in build_methods(function.owner) | {"__init__"}
