"""What loops and comprehensions walk whose variables names are: ``for x, m in zip(xs, masks)``."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors


def walked_by(node: ast.expr, parents: Mapping[ast.AST, ast.AST]) -> ast.expr | None:
    """What is walked where a name is the variable of a loop around it, beside others of its own items; else None."""
    if not isinstance(node, ast.Name):
        return None
    for around in ancestors(node, parents):
        if isinstance(around, ast.FunctionDef):
            return None
        loops = [around] if isinstance(around, ast.For) else getattr(around, "generators", [])
        for loop in loops:
            if any(isinstance(n, ast.Name) and n.id == node.id for n in symbols.walk(loop.target)):
                return _source(loop.target, loop.iter, node.id)
    return None


def _source(target: ast.expr, walked: ast.expr, name: str) -> ast.expr:
    match target, walked:
        case ast.Tuple(elts=targets), ast.Call(func=ast.Name(id="zip"), args=sources) if len(targets) == len(sources):
            for one, source in zip(targets, sources, strict=True):
                if isinstance(one, ast.Name) and one.id == name:
                    return source
        case _, ast.Call(func=ast.Name(id="enumerate"), args=[source, *_]):
            return source
    return walked
