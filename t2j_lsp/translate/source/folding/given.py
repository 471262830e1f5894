"""Parameters and attributes that are never None: a test for it is decided, and the parameter has no default."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from functools import cache

import libcst as cst

from .arguments import assigned_names
from .constants import folded
from .definitions import defaults, is_given
from .transformer import Transformer, code, transformed
from .uses import HelperCall


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
