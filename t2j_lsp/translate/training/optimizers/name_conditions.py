"""Conditions on PyTorch's names of parameters, by which a program picks the groups of an optimizer."""

from __future__ import annotations

import ast
import copy
import re

_NO_FORM = "Its groups are picked by a condition that has no form for Flax's parameter names."
_PLAIN = (
    ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.Compare, ast.In, ast.NotIn, ast.Eq, ast.NotEq, ast.Constant,
    ast.Name, ast.Load, ast.Store, ast.GeneratorExp, ast.comprehension, ast.List, ast.Tuple, ast.Set, ast.Call,
    ast.Attribute, ast.Subscript, ast.USub,
)  # fmt: skip
_FUNCTIONS = frozenset({"any", "all"})
_METHODS = frozenset({"startswith", "endswith", "split", "lower"})


class UnclearGroups(Exception):
    """An argument that isn't understood."""


def by_torch_name(node: ast.expr, name: str, parameter: str) -> str:
    """A condition on the variable ``name`` as one on ``torch_name``: ``any(nd in torch_name for nd in no_decay)``.

    Raises UnclearGroups if it asks for more than the name.
    """
    read = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    if not name or name not in read or parameter in read:
        raise UnclearGroups(_NO_FORM)
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Name(id=function)) if function in _FUNCTIONS and not inner.keywords:
                pass
            case ast.Call(func=ast.Attribute(attr=method)) if method in _METHODS and not inner.keywords:
                pass
            case ast.Attribute(attr=method) if method in _METHODS:
                pass
            case ast.Call() | ast.Attribute():
                raise UnclearGroups(_NO_FORM)
            case _ if not isinstance(inner, _PLAIN):
                raise UnclearGroups(_NO_FORM)
    made = copy.deepcopy(node)
    others = _renamed(node, read - {name})
    for inner in ast.walk(made):
        if isinstance(inner, ast.Name):
            inner.id = "torch_name" if inner.id == name else others.get(inner.id, inner.id)
    text = re.sub(r"\b(any|all)\(\(([^()]*)\)\)", r"\1(\2)", ast.unparse(made))
    text = text.replace("'", '"') if '"' not in text else text
    return f"({text})" if isinstance(node, ast.Compare | ast.BoolOp) else text


def _renamed(node: ast.expr, read: set[str]) -> dict[str, str]:
    """Other names for variables that would be the label's own: ``any(name in n for name in no_decay)``.

    Raises UnclearGroups where they are not the condition's.
    """
    taken = {"name", "parameter", "torch_name"} & read
    bound = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if not taken <= bound or len(taken) > 1 or taken and "part" in read:
        raise UnclearGroups(_NO_FORM)
    return dict.fromkeys(taken, "part")


def chosen_names(node: ast.expr) -> str | None:
    """The variable of which a list takes the names: ``sorted(list(decay))``; None for others."""
    match node:
        case ast.Name(id=held):
            return held
        case ast.Call(func=ast.Name(id="sorted" | "list" | "set"), args=[inner], keywords=[]):
            return chosen_names(inner)
    return None


def name_condition(node: ast.expr, name: str, parameter: str) -> str:
    """A condition on ``n, p`` of ``named_parameters()`` as one on a path and an array. Raises UnclearGroups."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=int()) as number]) if _rank(
            left, parameter
        ):
            return f"parameter.ndim {_SIGNS[type(op)]} {number.value}"  # type: ignore[str-bytes-safe]
        case ast.Compare(
            left=ast.Constant(value=str() as text), ops=[ast.In() | ast.NotIn() as op], comparators=[place]
        ):
            if ast.unparse(place) == name and _same_name(text):
                return f'"{text!s}" {"in" if isinstance(op, ast.In) else "not in"} name'
        case ast.Call(
            func=ast.Attribute(value=value, attr="startswith" | "endswith" as method),
            args=[ast.Constant(value=str(text))],
        ):
            if ast.unparse(value) == name and _same_name(text):
                return f'name.{method}("{text}")'
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return f"not {name_condition(inner, name, parameter)}"
        case ast.BoolOp(values=values):
            word = " and " if isinstance(node.op, ast.And) else " or "
            return "(" + word.join(name_condition(v, name, parameter) for v in values) + ")"
    return by_torch_name(node, name, parameter)


def _same_name(text: str) -> bool:
    """Whether a part of a parameter's name is the same in Flax: weights are kernels, scales or embeddings there.

    Nor may it be a part of what only Flax has, a Sequential's ``layers``, or the number of one, which stands behind
    that.
    """
    torch, flax = ("weight", "running", "num_batches", "in_proj"), ("kernel", "scale", "embedding", "layers")
    known = not any(part in text for part in torch) and not any(text in part or part in text for part in flax)
    return known and re.search(r"(^|\.)\d", text) is None


def _rank(node: ast.expr, parameter: str) -> bool:
    forms = ("{}.dim()", "{}.ndim", "len({}.shape)", "{}.ndimension()")
    return ast.unparse(node) in (form.format(parameter) for form in forms)


_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
