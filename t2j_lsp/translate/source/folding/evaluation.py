"""Calls whose value is known when a helper is written: of builtins, string methods and pure helpers, with literals."""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache
from typing import Any

import libcst as cst

from .definitions import annotated, definition, free_names, names_in, nodes
from .literals import UNKNOWN, parsed_literal, value_of
from .parts import of_parts
from .transformer import Transformer, transformed

_CALLED: dict[str, Callable[..., Any]] = {one.__name__: one for one in (abs, bool, int, len, max, min, sum, tuple)}
_USED: dict[str, Callable[..., Any]] = {one.__name__: one for one in (float, isinstance, list, range, str, zip)}
"""Builtins that are only used by helpers."""
_STRING_METHODS = frozenset(("endswith", "startswith", "lower", "upper"))
_NAMES: dict[str, Any] = {**_CALLED, **_USED, "Sequence": Sequence, "ValueError": ValueError}


def pure_functions(texts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The helpers that are functions of plain Python: of numbers, strings and tuples, and of each other."""
    functions = {name: text for name, text in texts.items() if _is_function(text)}
    while True:
        known = {
            name for name, text in functions.items() if free_names(text) - _annotations(text) <= {*functions, *_NAMES}
        }
        if len(known) == len(functions):
            return tuple(sorted(functions.items()))
        functions = {name: functions[name] for name in known}


@cache
def evaluated(text: str, functions: tuple[tuple[str, str], ...]) -> str:
    """The text of a definition with calls replaced by their values."""
    own = getattr(definition(text), "name", None)
    return of_parts(text, lambda part: _evaluated(part, functions, own))


@cache
def _evaluated(text: str, functions: tuple[tuple[str, str], ...], own: str | None) -> str:
    known = dict(functions)
    if not any(_may_be_known(call, known, own) for call in nodes(definition(text))):
        return text
    return transformed(text, lambda: _Evaluator(_made(functions), own))


def _may_be_known(call: ast.AST, functions: Container[str], own: str | None) -> bool:
    """Whether a call is of something that can be called here, with literals: looked up without a concrete tree."""
    match call:
        case ast.Call(func=ast.Name(id=name)) if name in functions and name != own or name in _CALLED:
            pass
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=int() | float())]):
            pass
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr=name)) if name in _STRING_METHODS:
            pass
        case _:
            return False
    return all(
        isinstance(one, ast.Constant | ast.UnaryOp | ast.Tuple)
        for one in (*call.args, *(k.value for k in call.keywords))
    )


@cache
def _is_function(text: str) -> bool:
    node = definition(text)
    return isinstance(node, ast.FunctionDef) and not node.decorator_list


@cache
def _annotations(text: str) -> frozenset[str]:
    """The names that stand in annotations alone."""
    node = definition(text)
    inside = names_in(place for _, place in annotated(node))
    names = [n for n in nodes(node) if isinstance(n, ast.Name)]
    return frozenset({n.id for n in names if n in inside} - {n.id for n in names if n not in inside})


@cache
def _made(functions: tuple[tuple[str, str], ...]) -> Mapping[str, Callable[..., Any]]:
    """The pure helpers, ready to be called."""
    names = dict(_NAMES)
    for _, text in functions:
        exec("from __future__ import annotations\n" + text, names)  # our own text: see `pure_functions`
    return {name: names[name] for name, _ in functions}


class _Evaluator(Transformer):
    def __init__(self, functions: Mapping[str, Callable[..., Any]], own: str | None) -> None:
        super().__init__()
        self.functions = functions
        self.own = own

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        match updated_node:
            case cst.Call(func=cst.Name("float"), args=[cst.Arg(value=given)]) if type(value_of(given)) in (int, float):
                return parsed_literal(float(value_of(given))) or updated_node
        called = self._called(updated_node.func)
        if called is None or any(argument.star for argument in updated_node.args):
            return updated_node
        values = [(a.keyword.value if a.keyword is not None else None, value_of(a.value)) for a in updated_node.args]
        if any(value is UNKNOWN for _, value in values):
            return updated_node
        try:
            result = called(*(v for k, v in values if k is None), **{k: v for k, v in values if k is not None})
        except (TypeError, ValueError):
            return updated_node
        return parsed_literal(result) or updated_node

    def _called(self, func: cst.BaseExpression) -> Callable[..., Any] | None:
        match func:
            case cst.Name(value=name) if name in self.functions and name != self.own:
                return self.functions[name]
            case cst.Name(value=name) if name in _CALLED:
                return _CALLED[name]
            case cst.Attribute(value=cst.SimpleString() as text, attr=cst.Name(value=name)) if name in _STRING_METHODS:
                method: Callable[..., Any] = getattr(value_of(text), name)
                return method
        return None
