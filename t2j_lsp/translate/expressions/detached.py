"""Values that are detached where they are made, of which no gradient is taken whatever is computed with them."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
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
            values = [_given(source.parents.get(n), n) for n in symbols.walk(function) if _binds(n, name)]
            known = (value is not None and is_detached(source, value, seen | {name}) for value in values)
            return bool(values) and all(known)
    return False


def _binds(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Name(id=own):
            return own == name and not isinstance(node.ctx, ast.Load)
        case ast.arg(arg=own):
            return own == name
        case ast.alias():
            return name in (node.asname, node.name)
    return False


def _given(statement: ast.AST | None, target: ast.AST) -> ast.expr | None:
    """What an assignment of one name gives it; None for other statements."""
    match statement:
        case ast.Assign(targets=[one], value=value) if one is target:
            return value
    return None
