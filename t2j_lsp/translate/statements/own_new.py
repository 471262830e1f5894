"""A module class's own ``__new__``, and what NNX can't do with it."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import ClassInfo

_ATTRIBUTES = "NNX has no place for attributes before __init__ runs: set them there"
_ANOTHER = (
    "NNX runs __init__ on whatever __new__ gives: make this choice in a function that builds the one or the other"
)
_RNGS = "NNX hands __new__ the constructor's arguments, and rngs is one of them: take **kwargs"


def no_place_for(new: ast.FunctionDef | ast.AsyncFunctionDef, owner: ClassInfo) -> str | None:
    """Why a ``__new__`` can't stay; None if it can."""
    stores = [n for n in symbols.walk(new) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
    if any(isinstance(n.value, ast.Name) and n.value.id != "cls" for n in stores):
        return _ATTRIBUTES
    returned = [n.value for n in symbols.walk(new) if isinstance(n, ast.Return) and n.value is not None]
    if not all(_is_new(value, new) for value in returned):
        return _ANOTHER
    init = owner.method("__init__")
    return _RNGS if init is not None and init.takes_rngs and new.args.kwarg is None else None


def _is_new(value: ast.expr, new: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is an object that another ``__new__`` made, under whatever name."""
    match value:
        case ast.Call(func=ast.Attribute(attr="__new__")):
            return True
        case ast.Name(id=name):
            stores = [n for n in symbols.walk(new) if isinstance(n, ast.Assign) and name in map(ast.unparse, n.targets)]
            return bool(stores) and all(_is_new(n.value, new) for n in stores)
        case _:
            return False
