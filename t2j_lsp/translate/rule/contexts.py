"""Contexts and decorators of libraries by their names, switches of gradients by what they are set to."""

from __future__ import annotations

import ast

from .binding import argument
from .facts import Fact, Qual
from .library import Trait, names_with

_SWITCHES = names_with(Trait.GRADIENT_SWITCH)
_OFF = names_with(Trait.NO_GRADIENT)
_ON = names_with(Trait.TRANSPARENT)


def context_name(fact: Fact, node: ast.expr) -> str:
    """The name of what a ``with`` or a decorator names by ``node``, whose function has a fact; empty where unknown.

    ``torch.set_grad_enabled(False)`` is called as the contexts that do the same, and so is one that is set to True.
    """
    name = fact.name if isinstance(fact, Qual) else ""
    if name in _SWITCHES and isinstance(node, ast.Call):
        match argument(node, 0, "mode"):
            case ast.Constant(value=False):
                return min(_OFF)
            case ast.Constant(value=True):
                return min(_ON & names_with(Trait.FORWARD))
    return name
