"""NumPy's functions given an array that a module holds: NNX passes that to compiled code, where it has no values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Object, Qual

from .file import Inference
from .forward_pass import is_known
from .gates import Gate

_OF_ARRAYS = ("numpy.",)
_OF_SIZES = re.compile(r"numpy\.(?:arange|empty|eye|full|identity|linspace|load\w*|ones|random\..*|zeros)$")
"""Functions that are given sizes or files, and no arrays."""
NUMPY = Gate(libraries=_OF_ARRAYS)


Facts = Mapping[ast.AST, Fact]


def computes_outside(call: ast.Call, facts: Facts) -> bool:
    """Whether a call, or the function of the file that it calls, gives such an array to NumPy or takes a number out."""
    fact = facts.get(call.func, UNKNOWN)
    if isinstance(call.func, ast.Name) and call.func.id in ("int", "float", "bool", "range"):
        return any(_held(argument, facts) for argument in call.args)
    if isinstance(fact, Qual):
        return fact.name.startswith(_OF_ARRAYS) and any(_held(argument, facts) for argument in _given(call))
    if not isinstance(fact, Function) or fact.info.external:
        return False
    held = set(_parameters_that_hold(call, fact.info, facts))
    return bool(held) and any(_reads(n, held, facts) for n in symbols.walk(fact.info.node) if isinstance(n, ast.Call))


def computes_of_unknown(node: ast.expr, facts: Facts) -> bool:
    """Whether NumPy computes an expression, or a function of the project has it do so, from values of unknown kind."""
    return any(_is_of_unknown(n, facts) for n in symbols.walk(node) if isinstance(n, ast.Call))


def _is_of_unknown(call: ast.Call, facts: Facts) -> bool:
    fact = facts.get(call.func, UNKNOWN)
    if isinstance(fact, Qual):
        parts = [part for argument in call.args[:1] for part in _values(argument) if isinstance(part, ast.Name)]
        takes_arrays = fact.name.startswith(_OF_ARRAYS) and not _OF_SIZES.match(fact.name)
        return takes_arrays and any(not is_known(facts.get(part, UNKNOWN)) for part in parts)
    if not isinstance(fact, Function) or fact.info.owner is not None:
        return False
    info, inside = fact.info, facts
    if isinstance(info.home, Inference):
        info.home.infer_function(info)
        inside = info.home.facts
    pairs = zip(symbols.positional_parameters(info.node), call.args, strict=False)
    names = {parameter.arg for parameter, value in pairs if not is_known(facts.get(value, UNKNOWN))}
    return bool(names) and any(_reads(n, names, inside) for n in symbols.walk(info.node) if isinstance(n, ast.Call))


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _held(value: ast.expr, facts: Facts) -> bool:
    """Whether it is computed with an attribute of a module that is an array of NumPy's."""
    return any(_is_attribute(part, facts) for part in _values(value))


def _is_attribute(node: ast.AST, facts: Facts) -> bool:
    if not isinstance(node, ast.Attribute) or not is_module(facts.get(node.value, UNKNOWN)):
        return False
    fact = facts.get(node)
    return isinstance(fact, Object) and fact.kind == "array"


def _values(node: ast.expr) -> Iterator[ast.AST]:
    """The parts of an expression whose values it needs."""
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        if not (isinstance(part, ast.Attribute) and part.attr in ("shape", "ndim", "dtype")):
            yield part
            waiting += symbols.children(part)


def _parameters_that_hold(call: ast.Call, info: FunctionInfo, facts: Facts) -> Iterator[str]:
    names = [a.arg for a in symbols.positional_parameters(info.node)]
    bound = names[1:] if info.owner is not None and isinstance(call.func, ast.Attribute) else names
    yield from (name for name, value in zip(bound, call.args, strict=False) if _held(value, facts))
    yield from (k.arg for k in call.keywords if k.arg is not None and _held(k.value, facts))


def _reads(call: ast.Call, names: set[str], facts: Facts) -> bool:
    fact = facts.get(call.func, UNKNOWN)
    of_numpy = isinstance(fact, Qual) and fact.name.startswith(_OF_ARRAYS)
    parts = (part for argument in _given(call) for part in _values(argument)) if of_numpy else ()
    return any(isinstance(part, ast.Name) and part.id in names for part in parts)
