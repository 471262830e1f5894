"""Layers that a module stands around: ``spectral_norm(nn.Linear(3, 4))`` is the layer, and has it inside in Flax."""

from __future__ import annotations

from t2j_lsp.translate.inference.rngs import build_methods
from t2j_lsp.translate.rule.facts import Fact, Layer
from t2j_lsp.translate.rule.library import Trait, names_with

from .context import Context

INSIDE = "layer_instance"
"""Flax's name for the layer that a module of its own stands around."""


_SHARING = names_with(Trait.SHARES_WEIGHT)


def is_wrapped(owner: Fact) -> bool:
    """Whether another module stands around a layer in Flax."""
    return isinstance(owner, Layer) and bool(owner.wrapped)


def shares_weight(owner: Fact) -> bool:
    """Whether PyTorch's ``weight`` of such a layer shares the memory of what is trained, until its first call."""
    return isinstance(owner, Layer) and owner.wrapped in _SHARING


def is_being_built(ctx: Context) -> bool:
    """Whether the code at hand runs before any forward pass: in a constructor, or in what only constructors call."""
    function = ctx.scope.function
    if function is None or function.owner is None:
        return False
    return function.name in build_methods(function.owner) | {"__init__"}
