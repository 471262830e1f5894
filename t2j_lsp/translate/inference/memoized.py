"""Decorators that keep what the function below them gave, and give it again: ``lru_cache``, and users' own."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import FunctionInfo

CACHES = ("functools.lru_cache", "functools.cache", "functools.cached_property")
_BY_NAME = frozenset({"lru_cache", *CACHES})


def memoizes(decorator: FunctionInfo) -> bool:
    """Whether a function of the user's is such a decorator, or makes one.

    It hands a function that it is given to one of `CACHES`, or stores what that function gives below a key in what
    outlasts the call: ``kept[key] = function(x)`` in an inner function, with ``kept`` from outside of it.
    """
    inner = [n for n in symbols.walk(decorator.node) if isinstance(n, ast.FunctionDef) and n is not decorator.node]
    return bool(inner) and (
        any(ast.unparse(n.func) in _BY_NAME for n in symbols.walk(decorator.node) if isinstance(n, ast.Call))
        or any(_stores_results(one, _given(decorator.node, inner)) for one in inner)
    )


def _given(decorator: ast.AST, inner: list[ast.FunctionDef]) -> set[str]:
    """The parameters of a function and of those that stand in it."""
    functions = [n for n in (decorator, *inner) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {name for one in functions for name in symbols.parameter_names(one)}


def _stores_results(wrapper: ast.FunctionDef, given: set[str]) -> bool:
    """Whether a function stores in something from outside what a function from outside gave it."""
    functions = given - set(symbols.parameter_names(wrapper))
    results: set[str] = set()
    own = set(symbols.parameter_names(wrapper))
    stores: list[tuple[str, ast.expr]] = []
    for node in symbols.walk(wrapper):
        match node:
            case ast.Name(name, ast.Store()):
                own.add(name)
            case ast.Assign(targets=[ast.Name(name)], value=value) if _calls(value, functions):
                results.add(name)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(kept))], value=value):
                stores.append((kept, value))
    return any(
        kept not in own and (_calls(value, functions) or isinstance(value, ast.Name) and value.id in results)
        for kept, value in stores
    )


def _calls(node: ast.expr, functions: set[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions
