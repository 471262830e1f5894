"""What names say of layers whose class isn't known: ``model.encoder.fc``, ``conv``, ``self.bn1``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

RENAMED = frozenset({"weight", "running_mean", "running_var"})
"""Attributes of PyTorch's layers that most of Flax's have under other names."""
_LAYERS = re.compile(r"(.*_)?(conv|bn|fc|lin|linear|dense|norm|ln|embed|embedding|layer|module)s?_?\d*")
_NETWORKS = re.compile(r".*(model|net|network|module|backbone|encoder|decoder)")


def named_as_layer(node: ast.expr) -> bool:
    """Whether it is called like a layer, or like a list of layers that an item is taken of."""
    return _LAYERS.fullmatch(_last_name(node)) is not None


def is_named_part(node: ast.expr) -> bool:
    """Whether it is called like a layer, or read from what is called like a network."""
    return named_as_layer(node) or any(_NETWORKS.fullmatch(_last_name(owner)) is not None for owner in holders(node))


def asks_for_value(node: ast.Attribute, parent: ast.AST | None) -> bool:
    """Whether what stands around a parameter computes with its value, and neither keeps nor sets it; or names it."""
    match parent:
        case ast.Attribute(attr=name, ctx=ast.Load()):
            return name not in ("grad", "data") and not name.endswith("_")
        case ast.BinOp() | ast.UnaryOp() | ast.Assign(targets=[ast.Name()]):
            return True
        case ast.Subscript(value=value, ctx=ast.Load()):
            return value is node
    return False


def holders(node: ast.expr) -> Iterator[ast.expr]:
    """What an attribute or item is read from, from the inside out: of ``model.layers[0].fc`` three."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
        yield node


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return _last_name(value)
    return ""
