"""Which values of a function's body may be None, as far as the body itself shows."""

from __future__ import annotations

import ast
from weakref import WeakKeyDictionary

from t2j_lsp import symbols

from .definitions import FunctionInfo

_GIVE_NONE: WeakKeyDictionary[FunctionInfo, bool] = WeakKeyDictionary()
_NAMES_OF_VALUES: WeakKeyDictionary[FunctionInfo, frozenset[str]] = WeakKeyDictionary()
"""What is known of functions; one that is being looked at counts as one that gives no None."""


def may_be_none(function: FunctionInfo, value: ast.expr) -> bool:
    """Whether a value in the body may be None, as far as the body itself shows."""
    match value:
        case ast.Constant():
            return value.value is None
        case ast.IfExp():
            known = value.body, value.orelse
            return any(
                may_be_none(function, branch) and not (isinstance(branch, ast.Name) and says(value.test, branch.id))
                for branch, says in zip(known, (_says_given, _says_none), strict=True)
            )
        case ast.Name():
            if value.id in function.none_names:
                return True
            if value.id in function.none_parameters | _names_of_values(function):
                return not _given(function, value.id, value)
            return False
        case ast.Call():
            return _calls_what_gives_none(function, value)
        case _:
            return False


def _names_of_values(function: FunctionInfo) -> frozenset[str]:
    """Names that the body assigns what a method gives that may give None, or one of two values."""
    if function not in _NAMES_OF_VALUES:
        _NAMES_OF_VALUES[function] = frozenset()
        _NAMES_OF_VALUES[function] = frozenset(
            target.id
            for node in symbols.walk(function.node)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call | ast.IfExp)
            if may_be_none(function, node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        )
    return _NAMES_OF_VALUES[function]


def _calls_what_gives_none(function: FunctionInfo, call: ast.Call) -> bool:
    """Whether a call runs another method of the class that may give None."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if function.owner is not None:
            method = function.owner.method(name)
        case _:
            return False
    if method is None or method is function:
        return False
    if method not in _GIVE_NONE:
        _GIVE_NONE[method] = False
        _GIVE_NONE[method] = _gives_none(method)
    return _GIVE_NONE[method]


def _gives_none(method: FunctionInfo) -> bool:
    """Whether a method gives None in one place and something in another."""
    given = [
        node.value for node in symbols.walk(method.node) if isinstance(node, ast.Return) and node.value is not None
    ]
    known = [value for value in given if isinstance(value, ast.Constant | ast.IfExp | ast.Name)]
    return any(may_be_none(method, value) for value in known) and not all(
        isinstance(value, ast.Constant) and value.value is None for value in given
    )


def _given(function: FunctionInfo, name: str, at: ast.expr) -> bool:
    """Whether a parameter can't be None at a place: for the conditions around it, or what is done before it."""
    block: list[ast.stmt] = function.node.body
    while True:
        around = None
        for statement in block:
            if any(node is at for node in symbols.walk(statement)):
                around = statement
                break
            if _settles(function, statement, name):
                return True
        if around is None:
            return False
        blocks = [getattr(around, field_name, None) for field_name in ("body", "orelse", "finalbody")]
        inner = next((b for b in blocks if isinstance(b, list) and any(at in symbols.walk(s) for s in b)), None)
        if inner is None:
            return False
        if isinstance(around, ast.If):
            says = _says_given if inner is around.body else _says_none
            if says(around.test, name):
                return True
        block = inner


def _settles(function: FunctionInfo, statement: ast.stmt, name: str) -> bool:
    """Whether a parameter isn't None behind a statement: it got a value, or None ended the run."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=target)]):
            return target == name and not may_be_none(function, statement.value)
        case ast.Assert():
            return _says_given(statement.test, name)
        case ast.If() if _says_none(statement.test, name):
            last = statement.body[-1]
            return isinstance(last, ast.Raise | ast.Return) or any(
                _settles(function, inner, name) for inner in statement.body
            )
        case _:
            return False


def _says_given(test: ast.expr, name: str) -> bool:
    """Whether a true condition means that a name isn't None: ``x is not None``, ``x``, one of several joined by and."""
    match test:
        case ast.BoolOp(op=ast.And()):
            return any(_says_given(value, name) for value in test.values)
        case ast.Compare(left=ast.Name(), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return isinstance(test.left, ast.Name) and test.left.id == name
        case _:
            return isinstance(test, ast.Name) and test.id == name


def _says_none(test: ast.expr, name: str) -> bool:
    """Whether a false condition means that a name isn't None: ``x is None``, ``not x``, one of several joined by or."""
    match test:
        case ast.BoolOp(op=ast.Or()):
            return any(_says_none(value, name) for value in test.values)
        case ast.Compare(left=ast.Name(), ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return isinstance(test.left, ast.Name) and test.left.id == name
        case ast.UnaryOp(op=ast.Not()):
            return isinstance(test.operand, ast.Name) and test.operand.id == name
        case _:
            return False
