"""Factory keywords: ``dd = {"device": device, "dtype": dtype}`` that a constructor spreads over every layer it builds.

JAX places arrays on its default device, and NNX layers take no such keywords: the spreads and the dict go.
"""

from __future__ import annotations

import ast

KEYS = frozenset({"device", "dtype"})


class FactoryKeywords(ast.keyword):
    """``**dd`` of a dict that holds nothing but a device and a dtype."""


def mark_factory_keywords(tree: ast.Module) -> set[ast.Assign]:
    """Make the spreads of factory dicts known as such; the assignments of these dicts."""
    found: set[ast.Assign] = set()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= mark_in_function(function)
    return found


def mark_in_function(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[ast.Assign]:
    """The same for one function."""
    made: dict[str, ast.Assign] = {}
    for statement in function.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) if name not in made and _is_factory(statement.value):
                made[name] = statement
    if not made:
        return set()
    spreads = [k for n in ast.walk(function) if isinstance(n, ast.Call) for k in n.keywords if k.arg is None]
    spread = {id(k.value) for k in spreads}
    for node in ast.walk(function):
        # Any other use may change the dict or hand it on.
        if isinstance(node, ast.Name) and node.id in made and id(node) not in spread | {id(made[node.id].targets[0])}:
            del made[node.id]
    for keyword in spreads:
        if isinstance(keyword.value, ast.Name) and keyword.value.id in made:
            keyword.__class__ = FactoryKeywords
    return set(made.values())


def _is_factory(value: ast.expr) -> bool:
    """Whether this is ``{"device": d, "dtype": t}`` or ``dict(device=d, dtype=t)``, or one of the two keys."""
    keys: list[object] = []
    match value:
        case ast.Dict():
            keys = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
        case ast.Call(func=ast.Name(id="dict"), args=[]):
            keys = [keyword.arg for keyword in value.keywords]
    return bool(keys) and KEYS.issuperset(keys)
