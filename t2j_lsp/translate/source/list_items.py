"""What the text puts into lists and other containers."""

from __future__ import annotations

import ast


def items_of(value: ast.expr) -> list[ast.expr]:
    """What a list, a tuple, a dict or a comprehension of the text holds; else the value itself."""
    match value:
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Dict(values=items):
            return items
        case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item) | ast.DictComp(value=item):
            return [item]
    return []


def added_to(node: ast.AST, name: str) -> list[ast.expr]:
    """What a statement adds to a list of this name: ``append``, ``insert``, ``extend`` and ``+=``."""
    match node:
        case ast.Call(func=ast.Attribute(value=holder, attr="append" | "insert"), args=[*_, value]):
            return [value] if ast.unparse(holder) == name else []
        case ast.Call(func=ast.Attribute(value=holder, attr="extend"), args=[values]):
            return items_of(values) if ast.unparse(holder) == name else []
        case ast.AugAssign(target=holder, op=ast.Add(), value=values):
            return items_of(values) if ast.unparse(holder) == name else []
    return []


def is_empty(node: ast.expr) -> bool:
    """Whether an expression makes an empty container: ``[]``, ``()``, ``{}``, ``list()``, ``dict()``."""
    match node:
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Call(func=ast.Name(id="list" | "tuple" | "dict"), args=[], keywords=[]):
            return True
    return False
