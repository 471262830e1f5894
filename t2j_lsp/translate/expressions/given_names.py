"""Names among what a partial was given: whether they have the same values where the function runs."""

from __future__ import annotations

import ast
from typing import Any

from t2j_lsp import symbols
from t2j_lsp.translate.source.text import Source

LOOPS = ast.For | ast.AsyncFor | ast.While


def reads_the_same(source: Source, made: ast.Call, node: ast.Call) -> bool:
    """Whether the names that a partial was given mean the same where it is called, and have the same values."""
    names = {n.id for a in [*made.args[1:], *made.keywords] for n in symbols.walk(a) if isinstance(n, ast.Name)}
    if not names or made not in source.parents:
        return not names  # what another file gave it is not in reach here
    scope = _function_around(source, made)
    if scope is not None and scope is not _function_around(source, node):
        return not names & source.symbols.bound(scope)
    return all(_is_kept(source, name, made, scope) for name in names)


def keeps_value(source: Source, name: ast.Name) -> bool:
    """Whether a variable of the function around is given one value: it is the same wherever it is read later."""
    scope = _function_around(source, name)
    if scope is None or name.id not in source.symbols.bound(scope):
        return False
    bound = _bindings(name.id, scope)
    looped = any(isinstance(at, LOOPS) for node in bound for at in symbols.ancestors(node, source.parents))
    return len(bound) + (name.id in symbols.parameter_names(scope)) == 1 and not looped


def _is_kept(source: Source, name: str, made: ast.Call, scope: symbols.FunctionNode | None) -> bool:
    """Whether nothing that comes behind a call gives a name another value."""
    bound = _bindings(name, scope or source.tree)
    if any((node.lineno, node.col_offset) > (made.lineno, made.col_offset) for node in bound):
        return False
    looped = any(isinstance(at, LOOPS) for at in symbols.ancestors(made, source.parents))
    return len(bound) <= 1 or not looped


def _bindings(name: str, scope: symbols.FunctionNode | ast.Module) -> list[Any]:
    """What gives a variable of a scope a value there, and what says that a function inside of it does."""
    inner = (n for n in symbols.walk(scope) if isinstance(n, ast.Nonlocal | ast.Global) and name in n.names)
    return [*(node for bound, node in symbols.bindings(scope.body) if bound == name), *inner]


def _function_around(source: Source, node: ast.AST) -> symbols.FunctionNode | None:
    for at in symbols.ancestors(node, source.parents):
        if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef):
            return at
    return None
