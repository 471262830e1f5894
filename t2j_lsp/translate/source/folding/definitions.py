"""The definition that a helper's text is."""

from __future__ import annotations

import ast
from functools import cache


@cache
def definition(text: str) -> ast.stmt:
    """The definition that is the whole of a text."""
    return ast.parse(text).body[0]


@cache
def members(text: str) -> frozenset[str]:
    """The methods and attributes that a class defines."""
    node = definition(text)
    found = {s.name for s in getattr(node, "body", ()) if isinstance(s, ast.FunctionDef)}
    found |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    return frozenset(found | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)})
