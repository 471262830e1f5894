"""What rules and the translator both ask of tensors."""

from __future__ import annotations

import ast
from typing import overload

from .facts import Fact, ListOf, MixedTuple, Scalar, Tensor, Tuple


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


def is_array_tree(fact: Fact) -> bool:
    """Whether it is a bare tensor, or a list, tuple or dict of such, that JAX takes as a tree."""
    match fact:
        case Tensor():
            return not fact.variable
        case MixedTuple():
            return False
        case Tuple(items=items):
            return bool(items) and all(map(is_array_tree, items))
        case ListOf(item=item, keys=keys):
            return (keys is None or isinstance(keys, Scalar)) and is_array_tree(item)
    return False


def holds_variable(fact: Fact) -> bool:
    """Whether it is a parameter or buffer, which Flax has as a variable, or a list, tuple or dict that has one."""
    match fact:
        case Tensor():
            return fact.variable
        case Tuple(items=items):
            return any(map(holds_variable, items))
        case ListOf(item=item):
            return holds_variable(item)
    return False
