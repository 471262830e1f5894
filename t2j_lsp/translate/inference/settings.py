"""Layers whose settings are read: ``self.conv.stride[0]``. Their helpers have them under PyTorch's names.

A standard layer of Flax calls them otherwise, or keeps none: where code reads one, the layer is built as its helper.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from t2j_lsp.translate.rule.facts import AnyModule, Fact, Layer
from t2j_lsp.translate.rule.layer import LAYERS


@dataclass
class ReadSettings:
    """Constructor calls whose layer is asked for a setting, and kinds of layers that are asked without one in sight."""

    calls: set[ast.Call] = field(default_factory=set)
    names: set[str] = field(default_factory=set)

    def of(self, node: ast.AST, name: str) -> bool:
        """Whether the layer that a call builds is asked for a setting."""
        return node in self.calls or name in self.names


def read_settings(nodes: Iterable[ast.AST], fact: Callable[[ast.AST], Fact]) -> ReadSettings:
    """The layers whose settings these nodes read."""
    settings = ReadSettings()
    for node in nodes:
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        owner = fact(node.value)
        if isinstance(owner, Layer) and _is_setting(owner.name, node.attr):
            if owner.node is not None:
                settings.calls.add(owner.node)
            else:
                settings.names.add(owner.name)
        elif isinstance(owner, AnyModule):
            settings.names |= {name for name in owner.names if _is_setting(name, node.attr)}
    return settings


def _is_setting(layer: str, attribute: str) -> bool:
    """Whether a layer's attribute is a parameter of its constructor that Flax's layer doesn't have under this name."""
    rule = LAYERS.get(layer)
    if rule is None or attribute in ("weight", "bias", "inplace"):
        return False
    return attribute in rule.signature.by_name and attribute not in rule.attributes and attribute not in rule.held
