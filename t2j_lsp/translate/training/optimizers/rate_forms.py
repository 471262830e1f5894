"""The forms in which programs set and read the learning rates of an optimizer's parameter groups."""

from __future__ import annotations

import ast
from collections.abc import Mapping


def group_owner(node: ast.expr) -> ast.expr | None:
    """The optimizer of ``optimizer.param_groups[0]["lr"]``."""
    match node:
        case ast.Subscript(
            value=ast.Subscript(
                value=ast.Attribute(attr="param_groups", value=owner),
                slice=ast.Constant(value=int()) | ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int())),
            ),
            slice=ast.Constant(value="lr"),
        ):
            return owner
    return None


def new_rate(body: ast.stmt, group: str) -> ast.expr | None:
    """What a statement gives ``group["lr"]``, by an assignment or, where it is a tensor, in place."""
    match body:
        case (
            ast.Assign(targets=[ast.Subscript() as target], value=value)
            | ast.AugAssign(target=ast.Subscript() as target, value=value)
        ):
            pass
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Subscript() as target, attr="copy_" | "fill_"), args=[value], keywords=[]
            )
        ):
            pass
        case _:
            return None
    return value if ast.unparse(target) == f"{group}['lr']" else None


def asks_all_alike(node: ast.Attribute, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a use of ``param_groups`` sets the rates of all of them, or reads one, or their number."""
    match parent := parents.get(node):
        case ast.Call(func=ast.Name(id="len")):
            return True
        case ast.Subscript():
            rate = parents.get(parent)
            return not isinstance(rate, ast.Subscript) or isinstance(rate.ctx, ast.Load)
        case ast.For(target=ast.Name(id=group), body=[body]):
            return new_rate(body, group) is not None
    return False
