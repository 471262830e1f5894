"""What rules and the translator both ask of tensors."""

from __future__ import annotations

import ast
from typing import overload

from .facts import Fact, Tensor


@overload
def behind_data(node: ast.expr) -> ast.expr: ...
@overload
def behind_data(node: ast.expr | None) -> ast.expr | None: ...
def behind_data(node: ast.expr | None) -> ast.expr | None:
    """The expression that one names the data of: ``p`` of ``p.data``; another expression is itself."""
    while isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    return node


def same_rank(left: Fact, right: Fact) -> bool:
    """Whether both are surely tensors with as many axes."""
    match left, right:
        case Tensor(rank=int() as one), Tensor(rank=other):
            return one == other
    return False
