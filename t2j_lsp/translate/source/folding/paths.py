"""Helpers that take a file or its path, where all calls give paths: they need not ask which of the two it is."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Container, Mapping

from t2j_lsp import symbols
from t2j_lsp.symbols import named_parameters, positional_parameters
from t2j_lsp.translate.source.assignments import assigned

from .arguments import assigned_names
from .definitions import definition
from .given import with_values
from .uses import HelperUses

_QUESTION = "hasattr({}, 'seek')"
_MAKERS = ("str", "Path", "pathlib.Path", "os.path.join")
"""Calls that give a path, as a text or as pathlib has it."""

Parameter = tuple[str | None, str]
"""A parameter of a helper, or a variable of the user's: that is of None."""


def of_paths(texts: Mapping[str, str], uses: Mapping[str, HelperUses], user: ast.Module) -> dict[str, str]:
    """The texts of helpers without the question whether something is an open file that always is a path."""
    paths = _paths(texts, uses, _path_variables(user))
    changed = dict(texts)
    for name, parameter in paths:
        if name is not None and '"seek"' in texts[name]:
            changed[name] = with_values(changed[name], ((_QUESTION.format(parameter), "False"),), name)
    return changed


def _paths(texts: Mapping[str, str], uses: Mapping[str, HelperUses], variables: set[Parameter]) -> set[Parameter]:
    """The parameters for which every call gives a path: all of them, less those that one gives something else."""
    given: dict[Parameter, list[tuple[str | None, ast.expr | None]]] = {}
    for name, text in texts.items():
        node = definition(text)
        if isinstance(node, ast.FunctionDef) and uses[name].known and not uses[name].bound:
            for index, argument in enumerate(positional_parameters(node)):
                if argument.arg not in assigned_names(node):
                    calls = uses[name].calls
                    given[name, argument.arg] = [(c.home, c.argument(index, argument.arg)) for c in calls]
    paths = {parameter for parameter, values in given.items() if values}
    while True:
        known = paths | variables
        fewer = {p for p in paths if all(_is_path(value, home, known) for home, value in given[p])}
        if fewer == paths:
            return paths
        paths = fewer


def _path_variables(user: ast.Module) -> set[Parameter]:
    """The variables of a file that only ever are paths."""
    bound: dict[str, int] = defaultdict(int)
    made: dict[str, list[ast.expr]] = defaultdict(list)
    for node in symbols.walk(user):
        match node:
            case ast.Assign():
                for target, value in assigned(node):
                    made[ast.unparse(target)].append(value)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                for argument in named_parameters(node):
                    bound[argument.arg] += 1
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound[node.id] += 1
        elif isinstance(node, ast.alias | ast.FunctionDef | ast.ClassDef):
            bound[node.name] += 1
    once = {name: values for name, values in made.items() if bound[name] == len(values)}
    return {(None, name) for name, values in once.items() if all(_is_path(value, None, ()) for value in values)}


def _is_path(node: ast.expr | None, home: str | None, known: Container[Parameter]) -> bool:
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.BinOp(left=left, op=ast.Add() | ast.Div() | ast.Mod(), right=right):
            return _is_path(left, home, known) or isinstance(node.op, ast.Add) and _is_path(right, home, known)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format" | "join")):
            return True
        case ast.Call(func=function):
            return ast.unparse(function) in _MAKERS
        case ast.Name(id=name):
            return (home, name) in known
    return False
