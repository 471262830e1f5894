"""Parameters that go from a definition, with the arguments that its callers pass for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import libcst as cst

from .docstrings import WithoutParameters
from .parts import BODY, HEAD, is_function, is_remark, of_parts, parts, words
from .transformer import Transformer, code, transformed

NEW = "__init__"


@cache
def without_parameters(text: str, function: str, names: frozenset[str], unsaid: frozenset[str] = frozenset()) -> str:
    """A definition without some parameters of the function, or of the method, of that name.

    Nothing is said any more of those ``unsaid``, whose absence says enough; what a class says of its constructor's
    parameters stands in its own docstring, too.
    """

    def change(part: str) -> str:
        if is_function(part, function):
            return _without_parameters(part, function, names, unsaid)
        return _unsaid(part, names, unsaid) if function == NEW and is_remark(part) else part

    return of_parts(text, change)


@cache
def _unsaid(text: str, names: frozenset[str], unsaid: frozenset[str]) -> str:
    return transformed(text, lambda: WithoutParameters(names, unsaid))


@cache
def _without_parameters(text: str, function: str, names: frozenset[str], unsaid: frozenset[str]) -> str:
    return transformed(text, lambda: _ParameterCutter(function, names, unsaid))


@cache
def without_arguments(text: str, callee: str, gone: frozenset[int], names: frozenset[str]) -> str:
    """A definition whose calls of ``callee`` pass nothing by these places and names any more.

    ``super().__init__`` is a callee as well.
    """
    return of_parts(text, lambda part: _without_arguments(part, callee, gone, names) if _calls(part, callee) else part)


def _calls(part: str, callee: str) -> bool:
    return words(part).issuperset(re.findall(r"\w+", callee))


@cache
def _without_arguments(text: str, callee: str, gone: frozenset[int], names: frozenset[str]) -> str:
    return transformed(text, lambda: _Arguments(callee, gone, names))


@cache
def without_methods(text: str, names: frozenset[str]) -> str:
    """A class without some of its methods and properties."""
    head, *body = parts(text) or (text,)
    kept = [part for part in body if not any(is_function(HEAD + part, name) for name in names)]
    return head + ("".join(kept) or BODY) if body else text


class _ParameterCutter(Transformer):
    def __init__(self, function: str, names: frozenset[str], unsaid: frozenset[str]) -> None:
        super().__init__()
        self.function = function
        self.names = names
        self.unsaid = unsaid
        self.depth = 0

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.depth += 1

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.depth -= 1
        if self.depth or original_node.name.value != self.function:
            return updated_node
        parameters = updated_node.params
        kept = {
            kind: [p for p in getattr(parameters, kind) if p.name.value not in self.names]
            for kind in ("posonly_params", "params", "kwonly_params")
        }
        star = parameters.star_arg
        if not kept["kwonly_params"] and isinstance(star, cst.ParamStar):
            star = cst.MaybeSentinel.DEFAULT
        changed = parameters.with_changes(star_arg=star, **kept)
        changed = _closed(changed, parameters)
        body = updated_node.body.visit(WithoutParameters(self.names, self.unsaid))
        return updated_node.with_changes(params=changed, body=body)


def _closed(parameters: cst.Parameters, before: cst.Parameters) -> cst.Parameters:
    """Parameters whose last one is followed by what followed the last one before."""
    comma = next((g[-1].comma for g in _groups(before) if g), cst.MaybeSentinel.DEFAULT)
    for kind, group in zip(_KINDS, _groups(parameters), strict=True):
        if group:
            return parameters.with_changes(**{kind: [*group[:-1], group[-1].with_changes(comma=comma)]})
        if isinstance(parameters.star_arg, cst.Param) and kind == "kwonly_params":
            return parameters.with_changes(star_arg=parameters.star_arg.with_changes(comma=cst.MaybeSentinel.DEFAULT))
    return parameters


_KINDS = ("kwonly_params", "params", "posonly_params")


def _groups(parameters: cst.Parameters) -> list[Sequence[cst.Param]]:
    return [getattr(parameters, kind) for kind in _KINDS]


class _Arguments(Transformer):
    def __init__(self, callee: str, gone: frozenset[int], names: frozenset[str]) -> None:
        super().__init__()
        self.callee = callee
        self.gone = gone
        self.names = names

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if code(original_node.func) != self.callee:
            return updated_node
        kept = [
            argument
            for index, argument in enumerate(updated_node.args)
            if (argument.keyword.value not in self.names if argument.keyword is not None else index not in self.gone)
        ]
        if kept and len(kept) < len(updated_node.args):
            last = updated_node.args[-1]
            kept[-1] = kept[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
        return updated_node.with_changes(args=kept)
