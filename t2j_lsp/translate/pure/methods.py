"""The methods of a class in the order in which they become functions."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import ClassInfo

from .children import Unconvertible


def called_first(info: ClassInfo) -> list[str]:
    """The methods but for the constructor, each behind those that it calls. Raises Unconvertible where they recur."""
    order: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in order:
            return
        node = info.methods[name].node
        if name in path:
            raise Unconvertible(node, f"its method {name} calls itself")
        for other in _calls(node):
            if other in info.methods and other != "__init__":
                visit(other, (*path, name))
        order.append(name)

    for name in info.methods:
        if name != "__init__":
            visit(name, ())
    return order


def _calls(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The methods that one calls on its module."""
    own = node.args.args[0].arg if node.args.args else ""
    return [
        call.func.attr
        for call in symbols.walk(node)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == own
    ]
