"""Classes that derive from a layer and leave its constructor out: ``nn.Module.__init__(self)`` in an ``nn.Linear``.

What such a class sets itself are PyTorch's names, often as properties; the forward pass that it inherits reads
Flax's names in Flax, and what only the layer's constructor makes.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import ClassInfo
from t2j_lsp.translate.rule.facts import Fact, Qual

from .layer_parameters import VARIABLES

_MODULE = "torch.nn.Module"
BYPASSED = (
    "the constructor of {0} isn't called, and what {0} is in Flax can't run without it: derive from nn.Module, and "
    "write the forward pass out"
)


def bypassed_layer(info: ClassInfo, facts: Mapping[ast.AST, Fact]) -> str | None:
    """The layer whose constructor a class leaves out while it needs what that makes; None if there is none."""
    layer, init = info.layer_base, info.methods.get("__init__")
    if layer is None or init is None:
        return None
    module, other, whole = False, False, False
    for call in (n for n in symbols.walk(init.node) if isinstance(n, ast.Call)):
        match call.func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[named, *_]), attr="__init__"):
                past = isinstance(fact := facts.get(named), Qual) and fact.name.startswith("torch.nn.")
                other, whole = other or past, whole or not past
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"):
                whole = True
            case ast.Attribute(value=owner, attr="__init__"):
                plain = isinstance(fact := facts.get(owner), Qual) and fact.name == _MODULE
                module, whole = module or plain, whole or not plain
    if whole or not (module or other):
        return None
    return layer if other or _needs_layer(info) else None


def _needs_layer(info: ClassInfo) -> bool:
    """Whether a class runs the layer's own forward pass, or has something under a name of the layer's."""
    own = {name for one in info.ancestry() for name in (*one.attributes, *one.methods)}
    if info.method("forward") is None or own & VARIABLES:
        return True
    methods = [method for one in info.ancestry() for name, method in one.methods.items() if name != "__init__"]
    return any(symbols.is_super(n) for method in methods for n in symbols.walk(method.node) if isinstance(n, ast.expr))
