"""Which dicts of modules are `nnx.Dict`: those of which only children are read, by names that stand in the text.

Flax's forgets the order in which it was filled, and finds its own methods among its items: whoever iterates over one,
asks what is in it, or adds to it needs PyTorch's.
"""

from __future__ import annotations

import ast

from .file import Inference
from .readers import handed_to_readers

_OF_DICTS = frozenset(
    ("items", "keys", "values", "pop", "popitem", "update", "clear", "get", "setdefault", "children", "named_children")
)


def is_stock_dict(inference: Inference, node: ast.Call) -> bool:
    """Whether nnx.Dict does for what a constructor's call makes: an attribute whose children are read by name."""
    match inference.source.parents.get(node):
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]):
            return node not in handed_to_readers(inference) and _reads_by_name(name, inference)
    return False


def _reads_by_name(name: str, inference: Inference) -> bool:
    """Whether each occurrence of an attribute but the one that sets it reads a child: ``self.parts.a``, ``["a"]``."""
    parents, stores = inference.source.parents, 0
    for node in inference.source.nodes:
        if isinstance(node, ast.Constant) and node.value == name:
            return False  # getattr takes it
        if not isinstance(node, ast.Attribute) or node.attr != name:
            continue
        match parents.get(node):
            case ast.Attribute(attr=child, ctx=ast.Load()) if child not in _OF_DICTS and not child.startswith("_"):
                pass
            case ast.Subscript(slice=ast.Constant(value=str()), ctx=ast.Load()):
                pass
            case _ if isinstance(node.ctx, ast.Store):
                stores += 1
            case _:
                return False
    return stores == 1
