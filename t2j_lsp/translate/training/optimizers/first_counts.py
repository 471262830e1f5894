"""The count that a scheduler begins with: ``last_epoch=-1``, also by way of a parameter."""

from __future__ import annotations

import ast
from collections.abc import Collection

from t2j_lsp import symbols
from t2j_lsp.translate.inference.call_sites import bound_arguments, defaults
from t2j_lsp.translate.rule.definitions import FunctionInfo

_FIRST = "-1"


def is_first_count(value: ast.expr, function: FunctionInfo | None, calls: Collection[ast.Call]) -> bool:
    """Whether a count is PyTorch's first, -1: as it stands in a ``function``, or in all its ``calls`` or by default."""
    if not isinstance(value, ast.Name) or function is None:
        return ast.unparse(value) == _FIRST
    named = [n for n in symbols.walk(function.node) if isinstance(n, ast.Name) and n.id == value.id]
    if not all(isinstance(n.ctx, ast.Load) for n in named):
        return False
    default = [given for p, given in defaults(function) if p.arg == value.id]
    places = [[given for p, given in bound_arguments(call, function) if p.arg == value.id] for call in calls]
    given = [one for place in places for one in place or default]
    starred = any(k.arg is None for call in calls for k in call.keywords)
    return bool(given) and not starred and all(ast.unparse(one) == _FIRST for one in given)
