"""The forms in which programs clear gradients that are stored in tensors, and change tensors by them."""

from __future__ import annotations

import ast
from collections.abc import Collection

CHANGES = {"add_": "+", "sub_": "-", "mul_": "*", "div_": "/"}
SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def gradient_name(taken: Collection[str]) -> str:
    """What a gradient is called beside other names."""
    return next(name for name in ("g", "grad", "gradient", "grad_of_p") if name not in taken)


def is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def is_flag(node: ast.AST) -> bool:
    """``requires_grad=True``, ``.requires_grad_()``."""
    match node:
        case ast.keyword(arg="requires_grad", value=ast.Constant(value=True)):
            return True
        case ast.Call(func=ast.Attribute(attr="requires_grad_"), args=[] | [ast.Constant(value=True)]):
            return True
    return False


def cleared(node: ast.stmt) -> ast.expr | None:
    """The tensor whose gradient a statement clears: ``w.grad = None``, ``w.grad.data.zero_()``."""
    match node:
        case ast.If(test=test, body=[inner], orelse=[]) if asks_for_gradient(test):
            return cleared(inner)
        case ast.Assign(targets=[ast.Attribute(attr="grad", value=owner)], value=ast.Constant(value=None)):
            return owner
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="zero_", value=held), args=[])):
            if isinstance(held, ast.Attribute) and held.attr == "data":
                held = held.value
            if isinstance(held, ast.Attribute) and held.attr == "grad":
                return held.value
    return None


def asks_for_gradient(node: ast.expr) -> bool:
    """``p.grad is not None``."""
    match node:
        case ast.Compare(left=ast.Attribute(attr="grad"), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
    return False


def asked(node: ast.stmt, name: str) -> list[ast.stmt]:
    """A statement of a loop over tensors, without the question whether there is a gradient."""
    match node:
        case ast.If(test=test, body=body, orelse=[]) if asks_for_gradient(test):
            return [s for inner in body for s in asked(inner, name)]
        case ast.With(body=body):
            return [s for inner in body for s in asked(inner, name)]
    return [node]


def changes(node: ast.stmt, name: str) -> bool:
    """Whether a statement gives a tensor a new value, made of its elements one by one."""

    def is_held(place: ast.AST) -> bool:
        return is_name(place.value if isinstance(place, ast.Attribute) and place.attr == "data" else place, name)

    match node:
        case ast.AugAssign(target=target, op=op, value=value):
            return is_held(target) and type(op) in SIGNS and is_arithmetic(value)
        case ast.Assign(targets=[ast.Attribute(attr="data") as target], value=value):
            return is_held(target) and is_arithmetic(value)
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=held, attr="add_" | "sub_"), args=[factor, value], keywords=[])
        ):
            return is_held(held) and is_arithmetic(factor) and is_arithmetic(value)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=held, attr=attr), args=[value], keywords=keywords)):
            given = [k.arg for k in keywords]
            known = attr in CHANGES and (not given or given == ["alpha"] and attr in ("add_", "sub_"))
            return is_held(held) and known and is_arithmetic(value) and all(is_arithmetic(k.value) for k in keywords)
    return False


def is_arithmetic(node: ast.expr) -> bool:
    """Names, attributes and numbers that are added and multiplied: the same in any layout."""
    allowed = (
        ast.BinOp,
        ast.UnaryOp,
        ast.Name,
        ast.Attribute,
        ast.Constant,
        ast.operator,
        ast.unaryop,
        ast.expr_context,
    )
    return all(isinstance(n, allowed) and not isinstance(n, ast.MatMult) for n in ast.walk(node))
