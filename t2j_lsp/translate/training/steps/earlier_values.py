"""Variables and attributes that a program sets in front of a step to values that PyTorch's gradients flow through.

``self.log_prob = dist.log_prob(action)`` in the method that acts, ``loss = -self.log_prob * delta`` in the one that
learns: in JAX the step is given a number. ``scale = 2 * w`` in front of a loop whose steps update ``w`` is one, too.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Container
from functools import cached_property

from t2j_lsp.symbols import nearest, own_nodes, walk
from t2j_lsp.translate.inference.call_sites import function_run_by
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.source.assignments import one_by_one

from .even_reach import run_by

Set = tuple[ast.stmt, ast.expr]
"""A statement that gives a variable a value, and the value."""


class EarlierValues:
    """What the variables that a step of one file reads were given outside of it."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.source = inference.source

    def outside(self, code: Collection[ast.AST], given: Container[str]) -> Callable[[ast.expr], list[Set]]:
        """What a variable that some code reads was given elsewhere; ``given`` are those it doesn't give one first."""
        run = run_by(self.inference, code)
        inside = set[ast.AST]().union(*map(walk, (*code, *(info.node for info in run))))
        stored = {n.attr for n in inside if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}

        def values(node: ast.expr) -> list[Set]:
            if is_module(self.inference.fact(node)):
                return []
            match node:
                case ast.Name(id=name) if name in given:
                    sets = self._set.get((self._home(node), name), [])
                case ast.Attribute(attr=name) if f"self.{name}" in given or name not in stored:
                    sets = self._set.get((None, f".{name}"), [])
                case _:
                    return []
            return [one for one in self._reaching(node, sets) if one[0] not in inside]

        return values

    def _reaching(self, node: ast.expr, sets: list[Set]) -> list[Set]:
        """What is left of what a variable was given where the block around a read gives it a value in front of it."""
        place = nearest(ast.stmt, node, self.source.parents)
        block = self.source.block_of(place) if place is not None else None
        if place is None or block is None:
            return sets
        front = [*block[: block.index(place)]]
        text = ast.unparse(node)
        for index in range(len(front) - 1, -1, -1):
            given = front[index]
            if isinstance(given, ast.Assign) and any(ast.unparse(t) == text for t in given.targets):
                kept = {n for s in front[index:] for n in walk(s)}
                return [one for one in sets if one[0] in kept]
        return sets

    def _home(self, node: ast.Name) -> ast.AST | None:
        home = self.source.home(node)
        return home if isinstance(home, ast.FunctionDef | ast.AsyncFunctionDef) else None

    @cached_property
    def _set(self) -> dict[tuple[ast.AST | None, str], list[Set]]:
        """What is set, by the function whose variable it is, None for the module level and for ``.attributes``."""
        out: dict[tuple[ast.AST | None, str], list[Set]] = {}
        for node in self.source.nodes:
            if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            value = node.value
            for target, given in (pair for one in targets for pair in given_each(self.inference, one, value)):
                for place in _places(target):
                    key = (self._home(place), place.id) if isinstance(place, ast.Name) else (None, f".{place.attr}")
                    out.setdefault(key, []).append((node, given))
        return out


def given_each(inference: Inference, target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment, each with what it is given, or may be made of.

    Of ``a, b = agent.returns(x)``, where a function of the file returns tuples: the items that it returns, and ``x``.
    """
    info = function_run_by(inference, value) if isinstance(value, ast.Call) else None
    if info is None or info.external or not isinstance(value, ast.Call) or not isinstance(target, ast.Tuple):
        return one_by_one(target, value)
    returned = [n.value for n in own_nodes(info.node) if isinstance(n, ast.Return)]
    tuples = [one.elts for one in returned if isinstance(one, ast.Tuple) and len(one.elts) == len(target.elts)]
    starred = any(isinstance(one, ast.Starred) for each in (target.elts, *tuples) for one in each)
    if not tuples or len(tuples) < len(returned) or starred:
        return one_by_one(target, value)
    given = [*value.args, *(keyword.value for keyword in value.keywords)]
    each = zip(target.elts, zip(*tuples, strict=True), strict=True)
    return [(one, part) for one, items in each for part in (*items, *given)]


def _places(target: ast.expr) -> list[ast.Name | ast.Attribute]:
    """The variables that a target names: ``a, self.b = ...``."""
    match target:
        case ast.Name() | ast.Attribute():
            return [target]
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return [place for one in elts for place in _places(one)]
        case ast.Starred(value=inner):
            return _places(inner)
    return []
