"""What a function is given by its callers: a parameter, an item of one, or what a loop walks of one."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from t2j_lsp import symbols

_WALKS = frozenset({"enumerate", "filter", "list", "reversed", "sorted", "tuple", "zip"})
_PARTS = frozenset({"items", "values"})


def is_given(node: ast.expr, parameters: Collection[str], parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether an expression is a parameter of its function, or a part of one: ``for module in args``, ``args[0]``."""
    match node:
        case ast.Name(id=name) if name in parameters:
            return True
        case ast.Name():
            return any(is_given(walked, parameters, parents) for walked in _walked(node, parents))
        case ast.Subscript(value=inner) | ast.Starred(value=inner):
            return is_given(inner, parameters, parents)
        case ast.Call(func=ast.Name(id=called), args=arguments) if called in _WALKS:
            return any(is_given(argument, parameters, parents) for argument in arguments)
        case ast.Call(func=ast.Attribute(value=inner, attr=called), args=[]) if called in _PARTS:
            return is_given(inner, parameters, parents)
    return False


def _walked(node: ast.Name, parents: Mapping[ast.AST, ast.AST]) -> Iterator[ast.expr]:
    """What the loops and comprehensions around a name walk whose variable it is."""
    for around in symbols.ancestors(node, parents):
        if isinstance(around, symbols.FunctionNode):
            return
        loops = [around] if isinstance(around, ast.For) else getattr(around, "generators", [])
        for loop in loops:
            if any(isinstance(n, ast.Name) and n.id == node.id for n in symbols.walk(loop.target)):
                yield loop.iter
