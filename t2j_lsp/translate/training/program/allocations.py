"""Where modules are made: several that a step takes share no variable if no call can have made two of them.

``nnx.jit(graph=False)`` takes several trees as it takes one, as long as they are different objects (see `trees`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import Class, is_module
from t2j_lsp.translate.rule.facts import AnyModule, Fact, Qual, Tensor
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.tensors import is_array_tree
from t2j_lsp.translate.source.positions import position

from .named_modules import same_module
from .objects import DEPTH, Objects, VariableScope
from .passed import Input
from .trees import Trees


class Allocations:
    """Follows modules to the constructor calls that they come from."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.ctx = objects.ctx
        self._trees: dict[str, bool] = {}
        """Whether a module that the file names so is a tree, wherever it is read."""

    def are_trees(self, modules: Sequence[list[ast.expr]], body: str) -> bool:
        """Whether modules, each read in some places, are trees without a variable in common, and stay so in ``body``.

        Arrays among them hold none.
        """
        held = [places for places in modules if not places or not all(map(self._is_array, places))]
        made = [self.made(places) for places in held]
        if not all(self._stays(*each, body, self.objects.trees) for each in zip(held, made, strict=True)):
            return False
        if len(held) < 2:
            return bool(held)
        several = [calls for calls in made if calls is not None]
        apart = len(several) == len(held) and sum(map(len, several)) == len(set[ast.Call]().union(*several))
        return apart and all(self._stands_alone(call) for calls in several for call in calls)

    def are_kept(self, modules: Sequence[list[ast.expr]], body: str) -> bool:
        """Whether calls of modules, each read in some places, set no more than variables, also in ``body``."""
        held = [places for places in modules if not places or not all(map(self._is_array, places))]
        return bool(held) and all(
            self._stays(places, self.made(places), body, self.objects.trees.graphs) for places in held
        )

    def _stays(self, places: list[ast.expr], calls: set[ast.Call] | None, body: str, trees: Trees) -> bool:
        """Whether a module, of which only the calls may be known that made it, is one of these, also in ``body``."""
        unknown = [place for place in places if _is_any(self.ctx.fact(place))]
        known = [place for place in places if place not in unknown]
        known += sorted(calls or (), key=position) if unknown else []
        return not (unknown and calls is None) and trees.are_passed(known, body)

    def facts(self, module: ast.expr) -> list[Fact]:
        """What a module may be: where no more is known than that it is one, what the calls that made it give."""
        fact = self.ctx.fact(module)
        made = self.made([module]) if isinstance(fact, AnyModule) else None
        return [fact] if made is None else [self.ctx.fact(call) for call in sorted(made, key=position)]

    def helper(self, name: str, *modules: str) -> str:
        """The helper that compiles something for modules, as the file names them: for a tree, or for any modules."""
        return name if len(modules) == 1 and self._is_tree(modules[0]) else f"{name}_graph"

    def _is_tree(self, text: str) -> bool:
        if text not in self._trees:
            self._trees[text] = self.are_trees([self._read.get(text, [])], "")
        return self._trees[text]

    @cached_property
    def _read(self) -> dict[str, list[ast.expr]]:
        """Where variables and attributes are read, by their texts."""
        out: dict[str, list[ast.expr]] = {}
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Load):
                if is_module(self.ctx.fact(node)):
                    out.setdefault(ast.unparse(node), []).append(node)
        return out

    def are_arrays(self, inputs: Sequence[Input]) -> bool:
        """Whether nothing of what a step takes is a module, random state, or a variable of Flax."""
        for one in inputs:
            facts = [self.ctx.fact(place) for place in one.places]
            if one.kind == "module" and not (facts and all(map(self._is_array, one.places))):
                return False
            if any(is_module(fact) or isinstance(fact, Tensor) and fact.variable for fact in facts):
                return False
        return True

    def _is_array(self, place: ast.expr) -> bool:
        return is_array_tree(self.ctx.fact(place))

    def made(self, places: list[ast.expr]) -> set[ast.Call] | None:
        """The calls that may have made a module; None where it can't be told."""
        out: set[ast.Call] = set()
        for place in places:
            calls = self._calls(place, self.objects.scope(place), 0)
            if calls is None:
                return None
            out |= calls
        return out or None

    def _calls(self, node: ast.expr, scope: VariableScope, depth: int) -> set[ast.Call] | None:
        node = same_module(node)
        if isinstance(node, ast.Call):
            wrapped = isinstance(fact := self.ctx.fact(node), AnyModule) and fact.wrapped is not None
            if wrapped and self._wraps(node) and depth <= DEPTH:
                return self._calls(node.args[0], self.objects.scope(node), depth + 1)
            return {node} if self._constructs(node) else None
        if depth > DEPTH or not isinstance(node, ast.IfExp) and self._is_set_elsewhere(node):
            return None
        out: set[ast.Call] = set()
        if isinstance(node, ast.IfExp):
            values: list[tuple[ast.expr | None, VariableScope]] = [(node.body, scope), (node.orelse, scope)]
        else:
            values = list(self.objects.sources(node, scope))
        for value, where in values:
            calls = self._calls(value, where, depth + 1) if value is not None else None
            if calls is None:
                return None
            out |= calls
        return out or None

    def _wraps(self, call: ast.Call) -> bool:
        """Whether a call is that of a wrapper that the output has, which keeps the module that it is given first."""
        fact = self.ctx.fact(call.func)
        return isinstance(fact, Qual) and fact.name in names_with(Trait.COPIED_CLASS) and bool(call.args)

    def _constructs(self, call: ast.Call) -> bool:
        """Whether a call makes a new module each time: of a class, of a layer, or a copy of all of one."""
        fact = self.ctx.fact(call.func)
        if isinstance(fact, Qual):
            return fact.name in LAYERS or fact.name == "copy.deepcopy"
        return isinstance(fact, Class) and fact.info.is_module or self.objects.trees.new.is_new(call)

    def _is_set_elsewhere(self, node: ast.expr) -> bool:
        """Whether a variable gets values that aren't looked at: in another function, or through another object."""
        if isinstance(node, ast.Name):
            return node.id in self._shared
        if not isinstance(node, ast.Attribute):
            return True
        owner = self.objects.owner(self.objects.scope(node))
        own = {n for method in (owner.methods.values() if owner else ()) for n in symbols.walk(method.node)}
        stores = (n for n in self.ctx.source.attributes.get(node.attr, ()) if not _is_load(n))
        return any(n not in own or ast.unparse(n) != ast.unparse(node) for n in stores)

    @cached_property
    def _shared(self) -> frozenset[str]:
        """The variables that functions inside of a scope give values."""
        source = self.ctx.source
        nodes = source.nodes if "global" in source.text or "nonlocal" in source.text else []
        return frozenset(name for n in nodes if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names)

    def _stands_alone(self, call: ast.Call) -> bool:
        """Whether a constructor is handed no module: what it makes would hold that one, too."""
        if isinstance(fact := self.ctx.fact(call.func), Qual) and fact.name == "copy.deepcopy":
            return True
        given = [n for argument in (*call.args, *call.keywords) for n in symbols.walk(argument)]
        return not any(isinstance(n, ast.Name | ast.Attribute) and is_module(self.ctx.fact(n)) for n in given)


def _is_load(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _is_any(fact: Fact) -> bool:
    """Whether no more is known of a module than that it is one."""
    return isinstance(fact, AnyModule) and fact.wrapped is None
