"""Loops over the parameters of two modules, pair by pair."""

from __future__ import annotations

import ast


def paired_modules(loop: ast.For) -> list[ast.expr | None]:
    """The modules of ``for p, q in zip(one.parameters(), other.parameters())``; nothing of another loop."""
    match loop.iter:
        case ast.Call(func=ast.Name(id="zip"), args=[one, other], keywords=[]):
            return [_module(one), _module(other)]
    return []


def _module(node: ast.expr) -> ast.expr | None:
    """The module of ``module.parameters()``."""
    match node:
        case ast.Call(func=ast.Attribute(value=module, attr="parameters"), args=[], keywords=[]):
            return module
    return None
