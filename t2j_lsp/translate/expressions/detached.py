"""Values of which no gradient is taken: detached where they are made, or that only become numbers or comparisons."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.text import Source


def is_detached(source: Source, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a value is ``x.detach()``, or a variable that the function gives nothing else."""
    match node:
        case ast.Call(func=ast.Attribute(attr="detach"), args=[], keywords=[]):
            return True
        case ast.Name(id=name) if name not in seen:
            around = ancestors(node, source.parents)
            functions = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
            function = next((at for at in around if isinstance(at, functions)), source.tree)
            bound = [n for n in source.bound_at.get(name, ()) if _is_inside(n, function, source)]
            values = [_given(source.parents.get(n), n) for n in bound]
            known = (value is not None and is_detached(source, value, seen | {name}) for value in values)
            return bool(values) and all(known)
    return False


_STOPPING = names_with(Trait.STOPS_GRADIENT)


def becomes_a_number(node: ast.expr, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether an expression is only there for a comparison or for a number: ``x.abs().max().item()``, ``x > 0``."""
    value: ast.AST = node
    while True:
        parent = parents.get(value)
        match parent:
            case ast.Compare():
                return not any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in parent.ops)
            case ast.Call(func=ast.Name(id="float" | "int" | "bool"), args=[one], keywords=[]) if one is value:
                return True
            case ast.Attribute(value=one, attr=name) if one is value:
                call = parents.get(parent)
                if isinstance(call, ast.Call) and call.func is parent:
                    if name in _STOPPING:
                        return True
                    parent = call
            case ast.BinOp() | ast.UnaryOp():
                pass
            case ast.Subscript(value=one) if one is value:
                pass
            case _:
                return False
        value = parent


def _is_inside(node: ast.AST, function: ast.AST, source: Source) -> bool:
    return function is source.tree or any(at is function for at in ancestors(node, source.parents))


def _given(statement: ast.AST | None, target: ast.AST) -> ast.expr | None:
    """What an assignment of one name gives it; None for other statements."""
    match statement:
        case ast.Assign(targets=[one], value=value) if one is target:
            return value
    return None
