"""Parameters and attributes that are never None, or one of a few strings: what tests for others is decided.

A parameter that is never None has no default.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

import libcst as cst

from .arguments import assigned_names
from .constants import folded, literal
from .definitions import defaults, is_given
from .transformer import Transformer, code, transformed
from .uses import HelperCall, HelperUses


def given(node: ast.FunctionDef, calls: Sequence[HelperCall], bound: Iterable[str], shift: int = 0) -> frozenset[str]:
    """The parameters that have a default and are never None: every call passes something else, or has the default.

    A ``functools.partial`` passes those that are ``bound`` something that may be None.
    """
    plain = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    taken = {*bound, *assigned_names(node)}
    return frozenset(
        name
        for name, default in defaults(node).items()
        if name not in taken
        and calls
        and all(
            is_given(c.argument(plain.index(name) - shift if name in plain else None, name) or default) for c in calls
        )
    )


Strings = Mapping[str, frozenset[str]]
"""Parameters, and the literals of all that they may be."""


def possible(definitions: Mapping[str, ast.stmt], uses: Mapping[str, HelperUses]) -> dict[str, Strings]:
    """For each function the parameters that are one of a few strings: what calls and partials pass, or the default."""
    functions = {n: f for n, f in definitions.items() if isinstance(f, ast.FunctionDef) and uses[n].known}
    found: dict[str, Strings] = {}
    for _ in functions:
        before, found = found, {n: dict(_strings(f, uses[n], found)) for n, f in functions.items()}
        if found == before:
            break
    return found


def _strings(
    node: ast.FunctionDef, uses: HelperUses, known: Mapping[str, Strings]
) -> Iterator[tuple[str, frozenset[str]]]:
    plain, taken = [a.arg for a in (*node.args.posonlyargs, *node.args.args)], assigned_names(node)
    calls = uses.calls
    for index, name in enumerate((*plain, *(a.arg for a in node.args.kwonlyargs))):
        if name in taken:
            continue
        bound = {value for one, value in uses.literals if one == name}
        default = defaults(node).get(name)
        given = [(c.home, c.argument(index if index < len(plain) else None, name) or default) for c in calls]
        said = [*([(None, default)] if bound else []), *given]
        values = [_texts_of(value, known.get(home or "", {})) for home, value in said]
        if values and None not in values and all(one is not None and one[:1] == '"' for one in bound):
            yield name, frozenset().union(*(v for v in values if v is not None), *([one] for one in bound if one))


def _texts_of(value: ast.expr | None, parameters: Strings) -> frozenset[str] | None:
    """The literals of what an argument may be, if these are strings."""
    match value:
        case ast.Constant(value=str()):
            return frozenset({literal(value)})
        case ast.Name(id=name):
            return parameters.get(name)
    return None


@cache
def within(text: str, values: tuple[tuple[str, frozenset[str]], ...]) -> str:
    """The text of a function without comparisons of parameters with strings that they never are."""
    changed = transformed(text, lambda: _Within(dict(values)))
    return folded(changed, ()) if changed != text else text


class _Within(Transformer):
    def __init__(self, values: Mapping[str, frozenset[str]]) -> None:
        super().__init__()
        self.values = values

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.BaseExpression:
        match updated_node:
            case cst.Comparison(
                left=cst.Name(value=name),
                comparisons=[
                    cst.ComparisonTarget(operator=cst.Equal() | cst.NotEqual() as way, comparator=cst.SimpleString())
                ],
            ) if name in self.values and code(updated_node.comparisons[0].comparator) not in self.values[name]:
                return cst.Name("True" if isinstance(way, cst.NotEqual) else "False")
        return updated_node


@cache
def never_none(text: str, names: frozenset[str], function: str | None = None) -> str:
    """A definition without tests whether some names, or attributes (``self.bias``), are None.

    With a ``function``, in the function or method of that name, whose parameters they are.
    """
    changed = transformed(text, lambda: _NeverNone(names, function))
    return folded(changed, ()) if changed != text else text


class _NeverNone(Transformer):
    def __init__(self, names: frozenset[str], function: str | None) -> None:
        super().__init__()
        self.names, self.function = names, function
        self.inside = function is None
        self.depth = 0

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.depth += 1
        self.inside |= self.depth == 1 and node.name.value == self.function

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.depth -= 1
        if self.depth or self.function is None or original_node.name.value != self.function:
            return updated_node
        self.inside = False
        return updated_node.with_changes(params=_required(updated_node.params, self.names))

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.BaseExpression:
        match updated_node:
            case cst.Comparison(
                left=cst.Name() | cst.Attribute() as left,
                comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot() as way, comparator=cst.Name("None"))],
            ) if self.inside and code(left) in self.names:
                return cst.Name("True" if isinstance(way, cst.IsNot) else "False")
        return updated_node


def _required(parameters: cst.Parameters, names: frozenset[str]) -> cst.Parameters:
    """Parameters of which some have no default, unless one in front of them has."""
    plain: list[cst.Param] = []
    for one in parameters.params:
        free = all(p.default is None for p in plain)
        plain.append(_bare(one) if one.name.value in names and free else one)
    named = [_bare(one) if one.name.value in names else one for one in parameters.kwonly_params]
    return parameters.with_changes(params=plain, kwonly_params=named)


def _bare(parameter: cst.Param) -> cst.Param:
    if not (isinstance(parameter.default, cst.Name) and parameter.default.value == "None"):
        return parameter  # a default that is a value stays
    return parameter.with_changes(default=None, equal=cst.MaybeSentinel.DEFAULT)
