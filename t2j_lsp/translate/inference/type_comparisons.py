"""Comparisons of a type with classes, ``type(m) == nn.Linear``, and of its name with a part, ``"Conv" in name``."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class TypeComparison:
    """What is asked of one object's type."""

    subject: ast.expr
    """The object."""
    classes: ast.expr
    """A class, or a tuple or list of them, or a variable that holds one."""
    several: bool
    """Whether it asks for one of several."""
    holds: bool
    """Whether it asks that the object is of one of these, and not that it isn't."""


def type_comparison(node: ast.AST) -> TypeComparison | None:
    """A comparison read as such; None for others."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[classes]):
            pass
        case _:
            return None
    match left:
        case (
            ast.Call(func=ast.Name(id="type"), args=[subject], keywords=[])
            | ast.Attribute(value=subject, attr="__class__")
        ):
            several = isinstance(op, ast.In | ast.NotIn)
            if several or isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
                return TypeComparison(subject, classes, several, isinstance(op, ast.In | ast.Is | ast.Eq))
    return None


def listed(classes: ast.expr) -> list[ast.expr]:
    """The classes that are written out: ``(A, B)``, ``A | B``."""
    if isinstance(classes, ast.BinOp) and isinstance(classes.op, ast.BitOr):
        return [*listed(classes.left), *listed(classes.right)]
    return classes.elts if isinstance(classes, ast.Tuple | ast.List | ast.Set) else [classes]


def part_of_name(test: ast.expr) -> tuple[ast.expr, str] | None:
    """The name and the part that a condition looks for: ``name.find("Conv") != -1``, ``"Conv" in name``."""
    match test:
        case (
            ast.Compare(
                left=ast.Call(func=ast.Attribute(value=name, attr="find"), args=[ast.Constant(value=str() as part)]),
                ops=[ast.NotEq()],
                comparators=[ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))],
            )
            | ast.Compare(left=ast.Constant(value=str() as part), ops=[ast.In()], comparators=[name])
        ):
            return name, part
    return None
