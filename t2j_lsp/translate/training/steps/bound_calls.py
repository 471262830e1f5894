"""Compiled functions that bind their modules and optimizers at their first call: ``@bound_jit``.

A call of a function under ``nnx.jit`` looks at all variables of what it is given (see `bound_steps`). Where a file
makes these once, changes nothing of their structure, and has them in one mode at each call, that is done once for each
of them; the call stays as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence, Set
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.symbols import nearest
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.inference.rngs import makes_rngs
from t2j_lsp.translate.rule.definitions import FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import ListOf, Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.folding.classes import INHERITED, LIST_METHODS
from t2j_lsp.translate.training.program.allocations import Allocations
from t2j_lsp.translate.training.program.cut_values import GROWING
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.passed import Input
from t2j_lsp.translate.training.program.single_runs import SingleRuns

from .modes import Modes

_CHANGING = GROWING | LIST_METHODS | INHERITED


class BoundCalls:
    """Looks at what the calls of a compiled function are given."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects
        self.modes = Modes(context)
        self.runs = SingleRuns(objects)
        self.allocations = Allocations(objects)

    @classmethod
    def of(cls, context: Context, objects: Objects) -> BoundCalls:
        """The one of a file."""
        if cls not in objects.looking:
            objects.looking[cls] = cls(context, objects)
        made: BoundCalls = objects.looking[cls]
        return made

    def keep_objects(self, place: ast.stmt, scope: VariableScope, objects: Sequence[Input]) -> bool:
        """Whether each call at a place is given the same modules and optimizers, as they were the first time."""
        if any(one.given for one in objects) or self._changes_structure or self.runs.runs_once(place):
            return False
        if not all(self._is_made_once(one, scope) for one in objects):
            return False
        modules = [one for one in objects if one.kind == "module" and one.text != "rngs"]
        return self._keeps_modes(place) or all(self._is_in_one_mode(place, one) for one in modules)

    def keep_structure(self, place: ast.stmt, modules: Sequence[list[ast.expr]]) -> bool:
        """Whether modules, each read in some expressions, are the same at each call at a place, in whatever mode."""
        if self._changes_structure or self.runs.runs_once(place):
            return False
        inputs = [Input("", ast.unparse(read[0]), "module", read) for read in modules]
        return all(self._is_made_once(one, self.objects.scope(place)) for one in inputs)

    def _keeps_modes(self, place: ast.stmt) -> bool:
        """Whether modes make no difference in the file, or none is set from the first call at a place to the last."""
        if self.modes.make_no_difference:
            return True
        around = self.runs.runs_inside(place)
        return around is not None and not self.modes.changes(around)

    def _is_made_once(self, one: Input, scope: VariableScope) -> bool:
        if one.text == "rngs":
            return self.makes_rngs_once
        if one.kind == "optimizer":
            made = self.objects.constructors(ast.parse(one.text, mode="eval").body, scope) or []
        else:
            made = [*(self.allocations.made(one.places) or ())]
        return bool(made) and all(map(self.runs.runs_once, made))

    @cached_property
    def makes_rngs_once(self) -> bool:
        """Whether the generator is seeded once at most, in front of what draws."""
        seeding = self.seeding
        own = [n for n in self.ctx.source.nodes if makes_rngs(n)]
        making = [info for info in self.ctx.inference.functions.values() if info.makes_rngs or info.seeds]
        once = all(map(self.runs.runs_once, [*seeding, *own])) and all(map(self.runs.is_called_once, making))
        return len(seeding) + len(own) <= 1 and len(making) <= 1 and once

    @cached_property
    def seeding(self) -> list[ast.Call]:
        """The calls that seed the generator."""
        seeds = names_with(Trait.SEED)
        return [n for n in self.ctx.source.nodes if isinstance(n, ast.Call) and self._is_of(n, seeds)]

    def _is_of(self, call: ast.Call, names: Set[str]) -> bool:
        fact = self.ctx.fact(call.func)
        return isinstance(fact, Qual) and fact.name in names

    def _is_in_one_mode(self, place: ast.stmt, module: Input) -> bool:
        """Whether a module computes the same in each mode, or is set to one of them in front of a place."""
        kinds = ("train", "eval")
        plain = bool(module.places) and not any(self.modes.differ(self.ctx.fact(one)) for one in module.places)

        def apart(other: ast.expr) -> bool:
            return bool(module.places) and self.allocations.are_trees([module.places, [other]], "")

        return plain or any(self._is_set(place, module.text, kind, apart) for kind in kinds)

    def _is_set(self, place: ast.stmt, module: str, kind: str, apart: Callable[[ast.expr], bool]) -> bool:
        """Whether a mode is set in front of a place, or of each call of its function that is given the module."""
        if self.modes.is_set_before(place, module, kind, apart=apart):
            return True
        info = self.objects.scope(place).function
        if info is None or any(map(self.modes.changes, info.node.body)) or self._is_stored(module, info):
            return False
        calls = [(call, dict(bound_arguments(call, info))) for call in self.runs.all_calls(info)]
        given = [(call, value) for call, values in calls for p, value in values.items() if p.arg == module]
        return 0 < len(calls) == len(given) and all(self._is_set_for(*one, kind, apart) for one in given)

    def _is_set_for(self, call: ast.Call, value: ast.expr, kind: str, apart: Callable[[ast.expr], bool]) -> bool:
        """Whether the mode of what a call is given is set in front of the statement that it stands in."""
        statement = nearest(ast.stmt, call, self.ctx.source.parents)
        if not isinstance(value, ast.Name) or statement is None or self.modes.changes(statement):
            return False
        return self.modes.is_set_before(statement, value.id, kind, apart=apart)

    def _is_stored(self, name: str, info: FunctionInfo) -> bool:
        named = (n for n in symbols.walk(info.node) if isinstance(n, ast.Name) and n.id == name)
        return any(not isinstance(n.ctx, ast.Load) for n in named)

    @cached_property
    def _changes_structure(self) -> bool:
        """Whether parts of a module are added, set or deleted anywhere but in a constructor."""
        return any(self._changes_parts(node) and not self._is_apart(node) for node in self.ctx.source.nodes)

    def _changes_parts(self, node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Attribute(attr=attr, value=held) as called) if attr in _CHANGING:
                return called_function(self.ctx.fact(called)) is None and self._is_part(held)
            case ast.Subscript(value=held, ctx=ast.Store() | ast.Del()):
                return self._is_part(held)
        return False

    def _is_part(self, node: ast.expr) -> bool:
        """Whether something is a module, a list of some, or kept by one; not a list that the scope has made itself."""
        fact = self.ctx.fact(node)
        if isinstance(fact, ListOf):
            made = isinstance(node, ast.Name) and self.objects.assigned(node.id, self.objects.scope(node))
            if made and all(isinstance(value, ast.List | ast.ListComp) for value in made):
                return False
            fact = fact.item
        return is_module(fact) or isinstance(node, ast.Attribute | ast.Subscript) and self._is_part(node.value)

    def _is_apart(self, node: ast.AST) -> bool:
        """Whether code stands in a constructor, or in a method that the file doesn't call."""
        function = nearest(ast.FunctionDef, node, self.ctx.source.parents)
        if function is None:
            return False
        return function.name == "__init__" or self.objects.trees.unseen.is_uncalled(function.name)
