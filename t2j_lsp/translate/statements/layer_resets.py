"""``reset_parameters`` of a class that derives from a layer: PyTorch's constructor calls it, Flax's doesn't."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import ClassInfo, FunctionInfo
from t2j_lsp.translate.rule.library import Trait, names_with

_RESETTING = names_with(Trait.RESETS)
_NAME = "reset_parameters"
NOT_CALLED = (
    "PyTorch's layer calls this as it is made, and Flax's doesn't: call it behind super().__init__() in the constructor"
)


def called_by_layer(info: ClassInfo) -> FunctionInfo | None:
    """The method of a class that its layer's constructor calls in PyTorch, and that nothing else calls there."""
    method = info.methods.get(_NAME)
    if method is None or info.layer_base not in _RESETTING or not info.is_module:
        return None
    if any(_NAME in base.methods for base in info.ancestry() if base is not info):
        return None  # the base's constructor calls it
    constructor = info.methods.get("__init__")
    return None if constructor is not None and _calls(constructor.node) else method


def reset_of(method: FunctionInfo, instance: str) -> str:
    """The call of it that a constructor makes."""
    return f"{instance}.{_NAME}({'rngs=rngs' if method.takes_rngs else ''})"


def _calls(constructor: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == _NAME
        for node in symbols.walk(constructor)
    )
