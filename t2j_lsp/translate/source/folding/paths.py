"""Helpers that take a file or its path, where all calls give paths: they need not ask which of the two it is."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

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


def of_paths(
    texts: Mapping[str, str], uses: Mapping[str, HelperUses], user: ast.Module, is_program: bool
) -> dict[str, str]:
    """The texts of helpers without the question whether something is an open file that always is a path.

    A program's functions are given what it gives them; other files may call those of a module.
    """
    paths = _paths(texts, uses, _path_variables(user, is_program))
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


def _path_variables(user: ast.Module, is_program: bool) -> set[Parameter]:
    """The variables, parameters and options of a file that only ever are paths: all, less those given others."""
    nodes = list(symbols.walk(user))
    bound: dict[str, int] = defaultdict(int)
    made: dict[str, list[list[ast.expr]]] = defaultdict(list)
    for node in nodes:
        match node:
            case ast.Assign():
                for target, value in assigned(node):
                    made[ast.unparse(target)].append([value])
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                for argument in named_parameters(node):
                    bound[argument.arg] += 1
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound[node.id] += 1
        elif isinstance(node, ast.alias | ast.FunctionDef | ast.ClassDef):
            bound[node.name] += 1
    for parameter, values in _passed(user, nodes) if is_program else ():
        made[parameter].append(values)
    once = {name: [v for one in given for v in one] for name, given in made.items() if bound[name] == len(given)}
    paths, options = {(None, name) for name, values in once.items() if values}, _options(once, nodes)
    while True:
        known = paths | options
        fewer = {(of, name) for of, name in paths if all(_is_path(value, None, known) for value in once[name])}
        if fewer == paths:
            return known
        paths = fewer


def _passed(user: ast.Module, nodes: Sequence[ast.AST]) -> Iterator[tuple[str, list[ast.expr]]]:
    """The parameters of the file's functions that are only called, each with what the calls give it, or its default."""
    reads = [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    for function in (s for s in user.body if isinstance(s, ast.FunctionDef) and not s.decorator_list):
        calls = [n for n in nodes if isinstance(n, ast.Call) and getattr(n.func, "id", None) == function.name]
        plain = [a.arg for a in positional_parameters(function)]
        starred = any(isinstance(a, ast.Starred) for c in calls for a in c.args)
        unnamed = any(k.arg is None for c in calls for k in c.keywords)
        if not calls or starred or unnamed or sum(n.id == function.name for n in reads) != len(calls):
            continue
        default = {argument.arg: value for argument, value in symbols.defaults(function.args)}
        for index, name in enumerate(plain):
            named = [k.value for c in calls for k in c.keywords if k.arg == name]
            given = [c.args[index] for c in calls if len(c.args) > index] + named
            yield name, given if len(given) == len(calls) else [*given, *([default[name]] if name in default else [])]


def _options(made: Mapping[str, list[ast.expr]], nodes: Iterable[ast.AST]) -> set[Parameter]:
    """What the command line gives, ``args.checkpoint``: no open file, unless argparse is told to open it."""
    parsed = [n for n, values in made.items() if any(ast.unparse(v).endswith(".parse_args()") for v in values)]
    attributes = [n for n in nodes if isinstance(n, ast.Attribute)]
    if len(parsed) != 1 or len(made[parsed[0]]) != 1 or any(n.attr == "FileType" for n in attributes):
        return set()
    asked = [n for n in attributes if isinstance(n.value, ast.Name) and n.value.id == parsed[0]]
    stored = {n.attr for n in asked if not isinstance(n.ctx, ast.Load)}
    return {(None, ast.unparse(n)) for n in asked if n.attr not in stored}


def _is_path(node: ast.expr | None, home: str | None, known: Container[Parameter]) -> bool:
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.BinOp(op=ast.Add() | ast.Div() | ast.Mod()):
            return True  # no operator is defined for an open file
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format" | "join")):
            return True
        case ast.Call(func=function):
            return ast.unparse(function) in _MAKERS
        case ast.Name(id=name):
            return (home, name) in known
        case ast.Attribute():
            return home is None and (None, ast.unparse(node)) in known
    return False
