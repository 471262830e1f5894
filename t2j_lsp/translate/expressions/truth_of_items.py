"""Where Python's own functions and operators ask arrays in lists and tuples whether they are true.

``all(x.isnan() for x in xs)``, ``sorted(losses)``, ``x in seen``, ``(a, b) == (c, d)`` and ``0 < x < 1`` each do so for
every item, without a word that says it.
"""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.binding import stated_result
from t2j_lsp.translate.rule.definitions import Function
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, ListOf, Qual, Tuple, is_tensor
from t2j_lsp.translate.rule.record import rule_of

from .context import Context
from .tensor_code import TensorCode

_OF_ITEMS = frozenset({"all", "any", "sorted", "min", "max", "filter"})
_OF_LISTS = frozenset({"index", "count", "remove", "sort"})
_EQUAL = ast.Eq | ast.NotEq
_ASKED = "this asks each array whether it is true, which fails under jit; use jnp.where, jnp.stack or jax.lax.cond"


def report_asked_items(ctx: Context, code: TensorCode, node: ast.Call | ast.Compare) -> None:
    """Note a call or a comparison that asks the arrays in it whether they are true."""
    asks = _compares(ctx, node) if isinstance(node, ast.Compare) else _calls(ctx, code, node)
    if asks and code.is_traced:
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else "=="
        ctx.report.note(node, name, "tensor-branch", _ASKED)


def _calls(ctx: Context, code: TensorCode, node: ast.Call) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name), args=[*given]) if name in _OF_ITEMS and ctx.fact(node.func) == UNKNOWN:
            if name == "filter" and len(given) == 2:
                return _gives_tensor(ctx, code, given[0]) or _is_none(given[0]) and _holds_tensor(ctx, given[1])
            key = next((k.value for k in node.keywords if k.arg == "key"), None)
            if key is not None:
                return _gives_tensor(ctx, code, key)
            return len(given) == 1 and _holds_tensor(ctx, given[0])
        case ast.Call(func=ast.Attribute(value=held, attr=name), args=args) if name in _OF_LISTS:
            if not isinstance(ctx.fact(held), ListOf | Tuple):
                return False
            key = next((k.value for k in node.keywords if k.arg == "key"), None)
            if key is not None:
                return _gives_tensor(ctx, code, key)
            return _holds_tensor(ctx, held) or any(is_tensor(ctx.fact(a)) for a in args)
    return False


def _compares(ctx: Context, node: ast.Compare) -> bool:
    sides = [node.left, *node.comparators]
    if len(node.ops) > 1 and any(is_tensor(ctx.fact(side)) for side in sides):
        return True
    for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
        if isinstance(op, ast.In | ast.NotIn) and _is_list(ctx, right):
            if is_tensor(ctx.fact(left)) or _holds_tensor(ctx, right):
                return True
        if isinstance(op, _EQUAL) and all(_is_list(ctx, side) and _holds_tensor(ctx, side) for side in (left, right)):
            return True
    return False


def _is_list(ctx: Context, node: ast.expr) -> bool:
    fact = ctx.fact(node)
    return isinstance(node, ast.List | ast.Tuple) or isinstance(fact, Tuple) or _is_plain_list(fact)


def _is_plain_list(fact: Fact) -> bool:
    """A list or tuple of one kind, and no dict, which asks for its keys."""
    return isinstance(fact, ListOf) and fact.keys is None


def _holds_tensor(ctx: Context, node: ast.expr) -> bool:
    """Whether items of what is walked over are surely arrays, of more than one item where that is known."""
    match node:
        case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item) | ast.SetComp(elt=item):
            return is_tensor(ctx.fact(item))
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return any(is_tensor(ctx.fact(item)) for item in items)
        case ast.Call(func=ast.Name(id="map"), args=[function, *_]):
            return _gives_tensor(ctx, None, function)
    fact = ctx.fact(node)
    if isinstance(fact, Tuple):
        return any(map(is_tensor, fact.items))
    return _is_plain_list(fact) and isinstance(fact, ListOf) and is_tensor(fact.item)


def _gives_tensor(ctx: Context, code: TensorCode | None, function: ast.expr) -> bool:
    """Whether a function gives an array: a lambda, one of the file, one of PyTorch's."""
    match function, ctx.fact(function):
        case ast.Lambda(body=body), _:
            return is_tensor(ctx.fact(body)) or code is not None and code.may_be_tensor(body)
        case _, Function(info=info):
            return info.result is not None and is_tensor(info.result)
        case _, Qual() as named if (rule := rule_of(named)) is not None and rule.emit is not None:
            return callable(rule.result) or rule.result == "same" or is_tensor(stated_result(rule.result))
    return False


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
