"""Which walks over a module's named parameters make a dict of arrays, for functions that take one in place of them.

Such a dict has PyTorch's names, order and layouts, so that whatever is computed with it means the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.text import Source

NAMED = frozenset({"named_parameters", "named_buffers"})
_DICTS = frozenset({"dict", "OrderedDict"})


def named_arrays(source: Source) -> frozenset[ast.Call]:
    """The calls of ``named_parameters()`` and ``named_buffers()`` that fill such a dict."""
    functions = {name.rpartition(".")[2] for name in names_with(Trait.BY_NAME)}
    if functions.isdisjoint(source.words):
        return frozenset()
    return frozenset(node for node, _ in bare_calls(source, NAMED) if _fills_dict(source, node))


def bare_calls(source: Source, methods: frozenset[str]) -> Iterator[tuple[ast.Call, str]]:
    """The calls of methods without arguments, with their names."""
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
            if not (node.args or node.keywords):
                yield node, node.func.attr


def is_dict(node: ast.AST | None) -> bool:
    """Whether it is ``dict(...)`` or ``OrderedDict(...)`` of one thing."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[_], keywords=[]):
            return name in _DICTS
    return False


def _fills_dict(source: Source, call: ast.Call) -> bool:
    parent = source.parents.get(call)
    match parent:
        case ast.comprehension():
            made = source.parents.get(parent)
            if isinstance(made, ast.ListComp | ast.GeneratorExp):
                return is_dict(source.parents.get(made))
            return isinstance(made, ast.DictComp)
        case ast.For(target=ast.Tuple(elts=[ast.Name(id=key), _])) if parent.iter is call:
            return any(_is_item(n, key) for statement in parent.body for n in symbols.walk(statement))
    return is_dict(parent)


def _is_item(node: ast.AST, key: str) -> bool:
    """Whether it is what an item of the dict is assigned to: ``params[name]``."""
    match node:
        case ast.Subscript(ctx=ast.Store(), slice=ast.Name(id=name)):
            return name == key
    return False
