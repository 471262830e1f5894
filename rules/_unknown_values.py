"""Values of which nothing is known: a name that may mean a tensor, and carry a gradient where PyTorch takes none."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, ListOf, Object, Qual, Scalar, Shape, Tensor, Tuple, is_number
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.record import Call


def may_be_tensor(node: ast.expr, call: Call) -> bool:
    """Whether nothing is known of a value that is named or computed."""
    return isinstance(node, ast.Name | ast.Call | ast.Subscript) and call.site.fact(node) == UNKNOWN


def is_unknown_parameter(fact: Fact) -> bool:
    """Whether it is what is known of a parameter that nothing is known of."""
    return fact != UNKNOWN and not isinstance(fact, Scalar | ListOf | Tuple | Shape | Object | Qual)


def operands(node: ast.expr) -> Iterator[ast.Name]:
    """The names that arithmetic computes with: those of ``m + 2 * n``."""
    match node:
        case ast.Name():
            yield node
        case ast.UnaryOp(operand=inner):
            yield from operands(inner)
        case ast.BinOp(left=left, right=right):
            yield from operands(left)
            yield from operands(right)


def is_handed(node: ast.expr | None, call: Call) -> bool:
    """Whether a value is a parameter that nothing is known of, an item of one, or computed or listed from such.

    ``2 * n``, ``xs[0]``, ``[a, b]``, ``x`` of ``for x in xs``.
    """
    match node:
        case ast.Name():
            fact = call.site.fact(node)
            return is_unknown_parameter(fact) if fact != UNKNOWN else is_handed(call.site.walked(node), call)
        case ast.Subscript(value=value, slice=index):
            held = call.site.fact(value)
            return is_number(call.site.fact(index)) and (held.is_open or held == UNKNOWN) and is_handed(value, call)
        case ast.UnaryOp(operand=inner) | ast.ListComp(elt=inner):
            return is_handed(inner, call)
        case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
            return is_handed(left, call) or is_handed(right, call)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return any(is_handed(item, call) for item in items)
    return False


def has_gradient(node: ast.expr | None, call: Call) -> bool:
    """Whether a value may carry the gradient of what the function around was given: not what the function makes anew.

    ``x``, ``2 * x``, ``x.clone()``, ``torch.as_tensor(x)``; not ``torch.randn(n)``.
    """
    match node:
        case ast.Name():
            fact = call.site.fact(node)
            if not isinstance(fact, Tensor):
                return is_handed(node, call)
            made = [one for name, one in call.site.made(node) if name not in names_with(Trait.OF_SHAPE)]
            fresh = bool(call.site.made(node)) and not any(_is_tensor(a, call) for one in made for a in one.args)
            return not fresh and fact.dtype not in ("int", "bool")
        case ast.Call(func=func, args=args):
            called = call.site.fact(func)
            of_library = isinstance(called, Qual)
            if isinstance(called, Qual) and called.name in names_with(Trait.OF_SHAPE):
                return False
            parts = args if of_library else [*args, func.value] if isinstance(func, ast.Attribute) else args
            return any(_is_tensor(one, call) and has_gradient(one, call) for one in parts) or (
                _takes_values(func, call) and any(is_handed(one, call) for one in args)
            )
        case ast.Subscript(value=inner) | ast.Attribute(value=inner) | ast.UnaryOp(operand=inner):
            return has_gradient(inner, call)
        case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
            return has_gradient(left, call) or has_gradient(right, call)
    return False


def _is_tensor(node: ast.expr, call: Call) -> bool:
    return isinstance(call.site.fact(node), Tensor)


def _takes_values(func: ast.expr, call: Call) -> bool:
    fact = call.site.fact(func)
    return isinstance(fact, Qual) and fact.name in names_with(Trait.FROM_VALUES)
