"""Parameters that all calls of a function agree on."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from functools import cache

from t2j_lsp.symbols import positional_parameters

from .constants import Constants
from .definitions import defaults, nodes
from .literals import is_literal, literal
from .signatures import without_arguments
from .uses import HelperCall


def drop_arguments(
    texts: dict[str, str],
    callee: str,
    node: ast.FunctionDef,
    names: frozenset[str],
    calls: Iterable[HelperCall],
    shift: int = 0,
) -> None:
    """Take the arguments for some parameters of a function out of the helpers that call it."""
    plain = [a.arg for a in positional_parameters(node)][shift:]
    places = frozenset(plain.index(n) for n in names if n in plain)
    for home in {call.home for call in calls if call.home is not None}:
        texts[home] = without_arguments(texts[home], callee, places, names)


def decided(node: ast.FunctionDef, calls: Sequence[HelperCall], bound: Iterable[str], shift: int = 0) -> Constants:
    """The parameters for which every call passes, or leaves out, the same literal. User's calls stay as they are.

    ``shift`` parameters in front get their arguments otherwise.
    """
    plain = positional_parameters(node)
    otherwise = defaults(node)
    constants: list[tuple[str, str]] = []
    assigned = assigned_names(node)
    for index, argument in enumerate([*plain, *node.args.kwonlyargs]):
        name = argument.arg
        if index < shift or name in bound or name in assigned:
            continue
        place = index - shift if index < len(plain) else None
        passed = [(call, call.argument(place, name)) for call in calls]
        passed = [(call, value) for call, value in passed if not _hands_on(call, value, node, name)]
        if any(value is not None and call.home is None for call, value in passed):
            continue
        default = otherwise.get(name)
        values = [value if value is not None else call.agreed.get(name, default) for call, value in passed] or [default]
        literals = {literal(v) if v is not None and is_literal(v) else None for v in values}
        if len(literals) == 1 and None not in literals:
            constants.append((name, literals.pop() or ""))
    return tuple(constants)


def _hands_on(call: HelperCall, value: ast.expr | None, node: ast.FunctionDef, name: str) -> bool:
    """Whether a function calls itself with its own parameter: such a call decides nothing."""
    return call.home == node.name and isinstance(value, ast.Name) and value.id == name


@cache
def assigned_names(node: ast.FunctionDef) -> frozenset[str]:
    """The names that a function binds in its body."""
    names = {n.id for n in nodes(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    inner = [n for n in nodes(node) if isinstance(n, ast.FunctionDef | ast.Lambda) and n is not node]
    return frozenset(names | {a.arg for f in inner for a in nodes(f.args) if isinstance(a, ast.arg)})
