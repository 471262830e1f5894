"""What an assignment gives to what, each of several by itself: ``self.net, loss = net, nn.MSELoss()``."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from t2j_lsp import symbols


def one_by_one(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """The targets that a target is made of, each with its value; the whole where a value is not written for each."""
    match target, value:
        case (ast.Tuple(elts=targets) | ast.List(elts=targets), ast.Tuple(elts=values) | ast.List(elts=values)):
            starred = any(isinstance(one, ast.Starred) for one in (*targets, *values))
            if len(targets) == len(values) and not starred:
                return list(zip(targets, values, strict=True))
    return [(target, value)]


def assigned(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """What an assignment to one target, or to several side by side, gives to what; empty for anything else."""
    match node:
        case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
            return one_by_one(target, value)
    return []


def values_of(place: ast.AST, target: ast.Name | ast.Attribute) -> list[ast.expr]:
    """What assignments in a function or class give a name or an attribute."""
    text = ast.unparse(target)
    pairs = (pair for node in symbols.walk(place) for pair in assigned(node))
    return [value for one, value in pairs if isinstance(one, type(target)) and ast.unparse(one) == text]


def target_of(value: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> ast.expr | None:
    """What an assignment gives a value to as it is, also as one of several: ``train, test = rows[:6], rows[6:]``."""
    return next((target for target, given in assigned(_statement(value, parents)) if given is value), None)


def value_of(target: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> ast.expr | None:
    """What an assignment gives one of its targets, also of those side by side; None where that isn't written there."""
    statement = _statement(target, parents)
    if isinstance(statement, ast.Assign):
        given = (pair for whole in statement.targets for pair in one_by_one(whole, statement.value))
        return next((value for one, value in given if one is target), None)
    return next((value for one, value in assigned(statement) if one is target), None)


def first_of_chain(call: ast.Call) -> ast.Call:
    """The call whose value the methods of a chain take on: ``torch.empty(0)`` in ``torch.empty(0).to(device)``."""
    match call.func:
        case ast.Attribute(value=ast.Call() as inner):
            return first_of_chain(inner)
    return call


def _statement(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> ast.AST:
    around = parents.get(node, node)
    return parents.get(around, around) if isinstance(around, ast.Tuple | ast.List) else around


def only_used(target: ast.expr) -> int | None:
    """Which of several names is used in ``_, indices = f(x)``; None if more are, or if it isn't such a tuple."""
    if not isinstance(target, ast.Tuple) or len(target.elts) < 2:
        return None
    ignored = [isinstance(e, ast.Name) and e.id == "_" for e in target.elts]
    return ignored.index(False) if sum(ignored) == len(ignored) - 1 else None
