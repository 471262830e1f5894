"""Forms that statements of a step have: what asks whether there is a state, and what writes into tensors."""

from __future__ import annotations

import ast
from typing import TypeGuard

from t2j_lsp import symbols

from .names import IN_PLACE, StepNames, is_gradient, is_state, writes_into


def asks_for_state(node: ast.If, names: StepNames) -> bool | None:
    """Whether a statement asks if a parameter has no state yet (True) or has one (False); None for other tests."""
    match node.test:
        case ast.Compare(left=left, ops=[ast.LtE()], comparators=[ast.Constant(value=1)]) if _has_state(left, names):
            made = {ast.unparse(n) for s in node.body for n in symbols.walk(s) if isinstance(n, ast.Subscript)}
            return True if len(made) > 1 else None
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            asked = _has_state(operand, names)
            return asked if asked is None else bool(asked)
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=0 | 1)]) if _has_state(left, names):
            match op:
                case ast.Eq() | ast.Lt():
                    return True
                case ast.NotEq() | ast.Gt():
                    return False
        case ast.Compare(left=ast.Constant(value=str()), ops=[ast.NotIn() | ast.In() as op], comparators=[state]):
            if _state(state, names):
                return isinstance(op, ast.NotIn)
    return False if _has_state(node.test, names) else None


def or_new_state(node: ast.If, names: StepNames) -> ast.expr | None:
    """What else a statement asks that asks if a parameter has no state yet: ``"old" not in state or step == 1``."""
    match node:
        case ast.If(test=ast.BoolOp(op=ast.Or(), values=[first, other])):
            asked = ast.copy_location(ast.If(first, node.body, node.orelse), node)
            return other if asks_for_state(asked, names) else None
    return None


def _state(node: ast.expr, names: StepNames) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys":
        node = node.func.value
    return is_state(node, names.parameter) or isinstance(node, ast.Name) and node.id in names.states


def _has_state(node: ast.expr, names: StepNames) -> bool | None:
    """Whether it is what a state has, ``state`` or ``len(state)``; None for other expressions."""
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[inner]):
            return True if _state(inner, names) else None
    return True if _state(node, names) else None


def skips(test: ast.expr, names: StepNames) -> bool | None:
    """Whether a test asks if a parameter has no gradient (True), or has one (False); None for other tests."""
    match test:
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
            plain = isinstance(left, ast.Name) and left.id == names.gradient
            return isinstance(op, ast.Is) if plain or is_gradient(left, names.parameter) else None
        case ast.UnaryOp(op=ast.Not(), operand=ast.Attribute(value=ast.Name(id=name), attr="requires_grad")):
            return True if name == names.parameter else None
        case ast.BoolOp(op=op, values=values):
            kinds = {skips(value, names) for value in values}
            return kinds.pop() if len(kinds) == 1 and kinds == {isinstance(op, ast.Or)} else None
    return None


def raises_for_sparse(node: ast.stmt) -> bool:
    """``if grad.is_sparse: raise RuntimeError(...)``, or an assertion: no gradient of JAX is sparse."""
    match node:
        case ast.If(test=test, body=[*before, ast.Raise()], orelse=[]):
            says = all(isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) for s in before)
        case ast.Assert(test=test):
            says = True
        case _:
            return False
    return says and any(isinstance(n, ast.Attribute) and n.attr == "is_sparse" for n in symbols.walk(test))


def is_in_place(node: ast.expr) -> TypeGuard[ast.Call]:
    """Whether it is a chain of calls in place: ``x.mul_(a).add_(b)``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and writes_into(node) is not None


def functional(node: ast.expr, torch: str) -> ast.expr:
    """The value of a chain of calls in place: ``x.mul(a).add(b)``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return node
    name, inner = node.func.attr, functional(node.func.value, torch)
    if name == "copy_":
        return node.args[0]
    if name in ("zero_", "fill_"):
        func = ast.Attribute(ast.Name(torch, ast.Load()), "zeros_like" if name == "zero_" else "full_like", ast.Load())
        return ast.Call(func, [inner, *node.args], [])
    plain = name.removesuffix(IN_PLACE) if not name.startswith(IN_PLACE) else name
    return ast.Call(ast.Attribute(inner, plain, ast.Load()), node.args, node.keywords)
