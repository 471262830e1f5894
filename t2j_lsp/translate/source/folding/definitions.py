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


def defaults(node: ast.FunctionDef) -> dict[str, ast.expr]:
    """What the parameters of a function are where no call passes them, for those that have a default."""
    plain = [*node.args.posonlyargs, *node.args.args]
    found = {a.arg: d for a, d in zip(plain[::-1], node.args.defaults[::-1], strict=False)}
    named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    return found | {a.arg: d for a, d in named if d is not None}
