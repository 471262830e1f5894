"""Layers that a module stands around: ``spectral_norm(nn.Linear(3, 4))`` is the layer, and has it inside in Flax."""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.rngs import build_methods
from t2j_lsp.translate.rule.facts import Fact, Layer, Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.tensors import behind_data

from .context import Context

INSIDE = "layer_instance"
"""Flax's name for the layer that a module of its own stands around."""


LOST = "PyTorch computes this weight anew in each call, so that what it is filled with here is lost."
_SHARING = names_with(Trait.SHARES_WEIGHT)


def is_wrapped(owner: Fact) -> bool:
    """Whether another module stands around a layer in Flax."""
    return isinstance(owner, Layer) and bool(owner.wrapped)


def shares_weight(owner: Fact) -> bool:
    """Whether PyTorch's ``weight`` of such a layer shares the memory of what is trained, until its first call."""
    return isinstance(owner, Layer) and owner.wrapped in _SHARING


def filler_of_computed_weight(ctx: Context, call: ast.Call) -> str | None:
    """The initialiser that fills a weight which PyTorch computes anew in each call: ``init.normal_(conv.weight)``."""
    fact = ctx.fact(call.func)
    if not isinstance(fact, Qual) or not fact.name.startswith("torch.nn.init.") or not call.args:
        return None
    match behind_data(call.args[0]):
        case ast.Attribute(value=layer, attr="weight"):
            owner = ctx.fact(layer)
            return fact.name if is_wrapped(owner) and not shares_weight(owner) else None
    return None


def is_being_built(ctx: Context) -> bool:
    """Whether the code at hand runs before any forward pass: in a constructor, or in what only constructors call."""
    function = ctx.scope.function
    if function is None or function.owner is None:
        return False
    return function.name in build_methods(function.owner) | {"__init__"}
