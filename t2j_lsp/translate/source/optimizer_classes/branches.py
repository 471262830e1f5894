"""Steps in other forms: what a ``continue`` skips as the other branch, and states that the constructor makes."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp import symbols

from .renaming import renamed
from .unfit import Unfit, need
from .walks import Walk, inner_loop


def without_continues(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Statements in which what stands behind ``if p.ndim < 2: ...; continue`` is the other branch."""
    for at, node in enumerate(body):
        match node:
            case ast.If(body=[ast.Continue()]) if _asks_for_none(node.test):
                continue
            case ast.If(body=[*before, ast.Continue()], orelse=[]):
                taken: list[ast.stmt] = [*before] or [ast.copy_location(ast.Pass(), node)]
                changed = ast.If(node.test, without_continues(taken), without_continues(body[at + 1 :]))
                return [*body[:at], ast.copy_location(changed, node)]
    return [*body]


def _asks_for_none(test: ast.expr) -> bool:
    """``p.grad is None``, ``not p.requires_grad``: what has no gradient."""
    none = any(isinstance(n, ast.Constant) and n.value is None for n in symbols.walk(test))
    return none or any(isinstance(n, ast.Attribute) and n.attr == "requires_grad" for n in symbols.walk(test))


def made_at_first(walk: Walk, loop: ast.For) -> list[ast.stmt]:
    """The loop of a constructor that makes states, as what a step does where there is none. Raises Unfit."""
    group, inner = inner_loop(loop)
    need(isinstance(inner.target, ast.Name), "what its constructor does with its parameters", inner)
    assert isinstance(inner.target, ast.Name)
    names = {group: walk.group, inner.target.id: walk.parameter}
    body = [renamed(s, names) for s in inner.body]
    if not all(isinstance(s, ast.Assign | ast.If) for s in body):
        raise Unfit("what its constructor does with its parameters", inner)
    test = ast.parse(f"len(self.state[{walk.parameter}]) == 0", mode="eval").body
    return [ast.fix_missing_locations(ast.copy_location(ast.If(test, body, []), inner))]
