"""Layers whose weight is another module's, of which a program asks nothing that only Flax's linear layers have."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from t2j_lsp import symbols

from .absent import imports_only_libraries
from .definitions import members
from .idle_attributes import without_attribute
from .signatures import without_methods
from .uses import Index

TIED = "TiedLinear"
"""The helper that stands for a linear layer of Flax."""
_IS_LINEAR, _IS_MODULE = f"class {TIED}(nnx.Linear):", f"class {TIED}(nnx.Module):"
_OF_LINEAR = frozenset(("kernel", "in_features", "out_features"))
"""What the helper has besides its weight and bias."""
_ASKS = re.compile(r"\.kernel\b|case nnx\.Linear|isinstance\([^()]*nnx\.Linear")
"""How helpers ask for linear layers."""


def of_tied_products(texts: Mapping[str, str], user: ast.Module, index: Index) -> dict[str, str]:
    """The texts of a program's helpers, with a plain module for a tied layer if nobody asks for a linear one."""
    others = [text for name, text in texts.items() if name not in (TIED, "Transposed")]
    if any(map(_ASKS.search, others)) or index.words & _OF_LINEAR or not imports_only_libraries(user):
        return dict(texts)
    nodes = list(symbols.walk(user))
    called = {node.func for node in nodes if isinstance(node, ast.Call)}
    if any(isinstance(n, ast.Attribute) and n.attr == "Linear" and n not in called for n in nodes):
        return dict(texts)
    return {**texts, TIED: as_product(texts[TIED])}


def as_product(text: str) -> str:
    """The text of the helper as a module that is only called and updated: without what only linear layers have."""
    text = without_methods(text.replace(_IS_LINEAR, _IS_MODULE), _OF_LINEAR)
    read = set(members(text) - _OF_LINEAR)
    while (changed := without_attribute(text, read)) != text:
        text = changed
    return text
