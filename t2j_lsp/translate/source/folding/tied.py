"""Layers whose weight is another module's, of which a program asks nothing that only Flax's linear layers have."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from t2j_lsp import symbols
from t2j_lsp.translate.source.helpers import helpers, renamed

from .absent import imports_only_libraries
from .uses import Index

TIED = "TiedLinear"
_SHORT = "TiedProduct"
"""The helper that stands for a linear layer of Flax, and what is enough where it is only called and updated."""
_OF_LINEAR = frozenset(("kernel", "in_features", "out_features"))
"""What the helper has besides its weight and bias."""
_ASKS = re.compile(r"\.kernel\b|case nnx\.Linear|isinstance\([^()]*nnx\.Linear")
"""How helpers ask for linear layers."""


def of_tied_products(texts: Mapping[str, str], user: ast.Module, index: Index) -> dict[str, str]:
    """The texts of a program's helpers, with a module of its own for a tied layer if nobody asks for a linear one."""
    others = [text for name, text in texts.items() if name not in (TIED, "Transposed")]
    if any(map(_ASKS.search, others)) or index.words & _OF_LINEAR or not imports_only_libraries(user):
        return dict(texts)
    nodes = list(symbols.walk(user))
    called = {node.func for node in nodes if isinstance(node, ast.Call)}
    if any(isinstance(n, ast.Attribute) and n.attr == "Linear" and n not in called for n in nodes):
        return dict(texts)
    return {**texts, TIED: renamed(helpers()[_SHORT].text, {_SHORT: TIED})}
