"""Tensors as keys of dicts and items of sets: PyTorch knows them there by their identity, and arrays have no hash."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, ListOf, Tensor, Tuple
from t2j_lsp.translate.rule.join import element

from .context import Context

_HASHED = "arrays and variables have no hash, and PyTorch's is that of the object: use a number or a name in its place"
_OF_ITEMS = frozenset({"set", "frozenset"})


def report_hashed(ctx: Context, node: ast.expr) -> None:
    """Tell of the arrays that an expression asks for a hash: ``{x: 1}``, ``{x, y}``, ``seen[x]``, ``set(xs)``."""
    for hashed in _hashed(ctx, node):
        if _is_array(ctx.fact(hashed)):
            ctx.report.gap(hashed, "hash", "refused", _HASHED)
    match node:
        case ast.Call(func=ast.Name(id=name), args=[held]) if name in _OF_ITEMS and ctx.fact(node.func) == UNKNOWN:
            if isinstance(fact := ctx.fact(held), ListOf | Tuple) and _is_array(element(fact)):
                ctx.report.gap(held, name, "refused", _HASHED)


def _hashed(ctx: Context, node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Dict(keys=keys):
            yield from (key for key in keys if key is not None)
        case ast.Set(elts=items):
            yield from items
        case ast.DictComp(key=item) | ast.SetComp(elt=item):
            yield item
        case ast.Subscript(value=held, slice=key) if _is_dict(ctx.fact(held)):
            yield key
        case ast.Call(func=ast.Name(id="hash"), args=[item]):
            yield item
        case ast.Call(func=ast.Attribute(value=held, attr="get" | "setdefault" | "pop"), args=[key, *_]):
            if _is_dict(ctx.fact(held)):
                yield key
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[held]) if _is_dict(ctx.fact(held)):
            yield key


def _is_dict(fact: Fact) -> bool:
    return isinstance(fact, ListOf) and fact.keys is not None


def _is_array(fact: Fact) -> bool:
    return isinstance(fact, Tensor) and fact.sure
