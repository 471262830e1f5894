"""Writes into tensors inside of expressions, ``v.add_(eps).sqrt()``, as statements before them."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from .names import IN_PLACE, same, writes_into


def written_first(node: ast.stmt) -> list[ast.stmt]:
    """A statement behind what it writes on the way; nothing where it writes nothing, or reads that more than once."""
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.Expr):
        return []
    inner = [call for call in _writes(node.value) if call is not node.value or not isinstance(node, ast.Expr)]
    text = ast.unparse(node.value)
    out: list[ast.stmt] = []
    changed = copy.deepcopy(node)
    for call in inner:
        into = writes_into(call)
        if into is None or call is node.value or text.count(ast.unparse(same(into))) > 1:
            return []
        out.append(ast.copy_location(ast.Expr(call), node))
        changed = _Instead(ast.dump(call), same(into)).visit(changed)
    return [*out, ast.fix_missing_locations(changed)] if out else []


def _writes(node: ast.expr) -> Iterator[ast.Call]:
    """The calls in an expression that write into a variable, each with the whole of its chain."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr.endswith(IN_PLACE) and not node.func.attr.startswith(IN_PLACE):
            if isinstance(writes_into(node), ast.Name | ast.Subscript | ast.Attribute):
                yield node
                return
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.expr):
            yield from _writes(inner)
        elif isinstance(inner, ast.keyword):
            yield from _writes(inner.value)


class _Instead(ast.NodeTransformer):
    """Puts what was written in the place of the call that wrote it."""

    def __init__(self, dumped: str, into: ast.expr) -> None:
        self.dumped, self.into = dumped, into

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if ast.dump(node) == self.dumped:
            return copy.deepcopy(self.into)
        self.generic_visit(node)
        return node
