"""Statements that take a batch, and make arrays of what PyTorch's loader gives: ``x, y = batch[0].to(device), ...``."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

from .batch_loops import is_move

ANOTHER = "Another batch takes the names {names} between the passes of one update: give that one names of its own."


def named_by(node: ast.AST) -> list[str]:
    """The variables that an assignment gives values, if it is one to plain names."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return [name]
        case ast.Assign(targets=[ast.Tuple(elts=targets) | ast.List(elts=targets)]):
            names = [t.id for t in targets if isinstance(t, ast.Name)]
            return names if len(names) == len(targets) else []
    return []


def takes_batch(node: ast.AST, made_arrays: Container[ast.AST]) -> bool:
    """Whether a statement only takes a batch of a loader, whose tensors become arrays in it."""
    items = [*_items(node.value)] if isinstance(node, ast.Assign) and named_by(node) else []
    return bool(items) and all(one in made_arrays and _may_be_batch(one) for one in items)


def _may_be_batch(node: ast.expr) -> bool:
    return is_move(node) or isinstance(node, ast.Name) or _is_next(node)


def _items(value: ast.expr) -> Iterator[ast.expr]:
    match value:
        case ast.Tuple(elts=items) | ast.List(elts=items):
            yield from items
        case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item):
            yield item
        case ast.Call(func=ast.Name(id="tuple" | "list" | "map"), args=[ast.ListComp() | ast.GeneratorExp() as inner]):
            yield inner.elt
        case _:
            yield value


def _is_next(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next"
