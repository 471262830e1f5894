"""Lists that a program fills before a step with values that PyTorch's gradients flow through: a step can't reach them.

``agent.log_probs.append(dist.log_prob(action))`` in one method, ``torch.stack(self.log_probs)`` in the loss of another:
in JAX what the step is given are numbers, and the policy would never learn.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterator
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors, nearest
from t2j_lsp.translate.inference.call_sites import bound_arguments, function_run_by, reached_functions
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.contexts import context_name
from t2j_lsp.translate.rule.definitions import ClassInfo, Function, FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import UNKNOWN, Object, Qual, Scalar, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.training.program.cut_values import GROWING
from t2j_lsp.translate.training.program.once import FILLED_ELSEWHERE

from .earlier_values import EarlierValues, given_each

_CUTS = names_with(Trait.STOPS_GRADIENT)
_MADE_OF_VALUES = names_with(Trait.FROM_VALUES), names_with(Trait.DEFAULT_TYPE)
_OF_SHAPE = names_with(Trait.OF_SHAPE)
_MAY_SHARE = names_with(Trait.FROM_NUMPY)
_Value = tuple[ast.AST, ast.expr]


class LostGradients:
    """Looks for them in what the steps of one file are given."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.source = inference.source
        self.earlier = EarlierValues(inference)
        self._cuts: dict[ast.AST, bool] = {}
        """Whether functions detach what they give."""
        self._given_to: dict[ast.FunctionDef, dict[str, list[ast.expr]]] = {}

    def reason(
        self, code: Collection[ast.AST], modules: Collection[str] | None, given: Collection[str], whole: bool = False
    ) -> str | None:
        """Why a step of some code can't be given what it reads; it updates ``modules``, or nobody knows which.

        ``given`` are the variables that have their values from before. A ``whole`` step plays what it learns from:
        lists may be filled by functions that it calls.
        """
        moved = dict.fromkeys(node for part in code for node in symbols.walk(part))
        played = [info.node for info in reached_functions(self.inference, code)] if whole else []
        filling = set[ast.AST](moved).union(*map(symbols.walk, played))
        names = {text.rpartition(".")[2] for text in modules or ()}
        trained = _Updated(names, self._classes(names), modules is None)
        earlier = self.earlier.outside(code, given)
        for node in moved:
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                held = self._lost(node, trained, filling, set()) or self._passed(node, trained)
                if (
                    held is None
                    and not self._is_leaf(node, trained)
                    and any(self._is_carried(*one, trained) for one in earlier(node))
                ):
                    held = node
                if held is not None and not self._is_cut(node):
                    return f"It reads {ast.unparse(held)}, {FILLED_ELSEWHERE}."
        return None

    def _classes(self, names: set[str]) -> set[ClassInfo]:
        """The classes of modules of these names."""
        return set[ClassInfo]().union(*(self._classes_by_name.get(name, ()) for name in names))

    @cached_property
    def _classes_by_name(self) -> dict[str, set[ClassInfo]]:
        classes: dict[str, set[ClassInfo]] = {}
        for node in self.source.nodes:
            if isinstance(node, ast.Name | ast.Attribute):
                fact = self.inference.fact(node)
                if isinstance(fact, Instance) and is_module(fact):
                    classes.setdefault(_key(node), set()).add(fact.cls.info)
        return classes

    # --- what is read ---------------------------------------------------------------------------------------------

    def _lost(self, node: ast.expr, trained: _Updated, moved: set[ast.AST], seen: set[ast.AST]) -> ast.expr | None:
        """The list that a value is, or is made of outside of the step, if it was filled so."""
        if node in seen:
            return None
        seen.add(node)
        for place, held, value in self._fills.get(_key(node), ()):
            same = isinstance(node, ast.Attribute) or self._home(node) is self._home(held)
            if place not in moved and same and self._carries(value, trained, set()):
                return node
        for statement, value in self._given(node) if isinstance(node, ast.Name) else ():
            if statement in moved or self._without_gradient(statement):
                continue
            for inner in self.uncut(value):
                if isinstance(inner, ast.Name | ast.Attribute):
                    if (lost := self._lost(inner, trained, moved, seen)) is not None:
                        return lost
        return None

    def _passed(self, node: ast.expr, trained: _Updated) -> ast.expr | None:
        """A parameter of the step's function, if a call gives it what a module computed that the step trains."""
        function = nearest(ast.FunctionDef, node, self.source.parents)
        if not isinstance(node, ast.Name) or function is None:
            return None
        part = self.source.parents.get(node)  # of an object that holds modules, optimizers and numbers
        read = (node, part) if isinstance(part, ast.Attribute) and part.value is node else (node,)
        facts = [self.inference.fact(one) for one in read]
        plain = any(isinstance(fact, Scalar | Object) or is_module(fact) for fact in facts)
        if plain or _names_one(node, trained.names):
            return None
        for value in self._arguments(function).get(node.id, ()):
            if self._carries(value, trained, set()):
                return node
        return None

    def _arguments(self, function: ast.FunctionDef) -> dict[str, list[ast.expr]]:
        """What calls give the parameters of a function that it doesn't give new values: those may be detached."""
        if function not in self._given_to:
            info = self.inference.functions.get(function)
            names = [n for n in symbols.walk(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
            stored, given = {n.id for n in names}, dict[str, list[ast.expr]]()
            bound = (bound_arguments(call, info) for call in self._calls_of.get(function, ()) if info is not None)
            for parameter, value in itertools.chain.from_iterable(bound):
                if parameter.arg not in stored:
                    given.setdefault(parameter.arg, []).append(value)
            self._given_to[function] = given
        return self._given_to[function]

    @cached_property
    def _calls_of(self) -> dict[ast.AST, list[ast.Call]]:
        """The calls of each function of the file, also by an object that has it as a method."""
        calls: dict[ast.AST, list[ast.Call]] = {}
        for node in self.source.nodes:
            if isinstance(node, ast.Call) and (info := function_run_by(self.inference, node)) is not None:
                calls.setdefault(info.node, []).append(node)
        return calls

    @cached_property
    def _fills(self) -> dict[str, list[tuple[ast.AST, ast.expr, ast.expr]]]:
        """What lists are filled with, by the last name of the list: the call, the list, the value."""
        fills: dict[str, list[tuple[ast.AST, ast.expr, ast.expr]]] = {}
        for node in self.source.nodes:
            match node:
                case ast.Call(
                    func=ast.Attribute(attr=attr, value=ast.Name() | ast.Attribute() as held), args=[*_, value]
                ):
                    if attr in GROWING and not isinstance(self.inference.fact(held), Qual):  # torch.add fills none
                        fills.setdefault(_key(held), []).append((node, held, value))
        return fills

    # --- what it was filled with ----------------------------------------------------------------------------------

    def _is_carried(self, statement: ast.stmt, value: ast.expr, trained: _Updated) -> bool:
        """Whether a statement gives a variable a value that gradients flow through to what is trained."""
        return not self._without_gradient(statement) and self._carries(value, trained, set())

    def _carries(self, value: ast.expr, trained: _Updated, seen: set[ast.AST]) -> bool:
        """Whether a value is computed with a module that is trained, so that its gradient flows there."""
        if self._without_gradient(value):
            return False
        for node in self.uncut(value):
            if node in seen:
                continue
            seen.add(node)
            if isinstance(node, ast.Call) and self._calls(node, trained, seen):
                return True
            if isinstance(node, ast.Name | ast.Attribute) and self._is_leaf(node, trained):
                return True
            for statement, given in self._given(node) if isinstance(node, ast.Name) else ():
                if not self._without_gradient(statement) and self._carries(given, trained, seen):
                    return True
        return False

    def _is_leaf(self, node: ast.Name | ast.Attribute, trained: _Updated) -> bool:
        """Whether something is computed with a bare tensor that is trained; a list of such gives back what it holds."""
        held = isinstance(self.source.parents.get(node), ast.List | ast.Tuple | ast.Dict | ast.Set | ast.Starred)
        return _key(node) in trained.names and isinstance(self.inference.fact(node), Tensor) and not held

    def _calls(self, node: ast.Call, trained: _Updated, seen: set[ast.AST]) -> bool:
        """Whether a call runs a module that is trained."""
        fact = self.inference.fact(node.func)
        if is_module(fact):
            owner = self._class_around(node)
            return trained.unknown or _key(node.func) in trained.names or owner in trained.classes
        if fact == UNKNOWN and _names_one(node.func, trained.names):
            return True
        if not isinstance(fact, Function) or fact.info.external or isinstance(self.inference.fact(node), Scalar):
            return False
        if fact.info.node in seen or self._is_without(fact.info):
            return False
        seen.add(fact.info.node)
        returned = [n.value for n in symbols.walk(fact.info.node) if isinstance(n, ast.Return) and n.value is not None]
        return any(self._carries(value, trained, seen) for value in returned)

    def uncut(self, value: ast.AST) -> Iterator[ast.AST]:
        """The nodes of an expression that gradients flow through."""
        stack = [value]
        while stack:
            node = stack.pop()
            match node:
                case ast.Attribute(attr=attr) if attr in _CUTS or attr == "grad":
                    continue
                case ast.Call(func=ast.Attribute(attr=attr)) if attr in _CUTS:
                    continue
                case ast.Compare() | ast.Lambda():
                    continue
                case ast.Call(func=func) if self._copies_values(func):
                    continue
                case ast.Call(func=func) if self._detaches(node):
                    yield node
                    stack.append(func)
                    continue
                case ast.ListComp(elt=elt) | ast.GeneratorExp(elt=elt) if not self._flows_from(node):
                    stack.append(elt)
                    continue
            fact = self.inference.fact(node) if isinstance(node, ast.expr) else None
            if isinstance(fact, Tensor) and fact.dtype in ("int", "bool"):
                continue
            if isinstance(fact, Scalar) and fact.kind != "none":
                continue
            yield node
            stack += ast.iter_child_nodes(node)

    def _copies_values(self, function: ast.expr) -> bool:
        """Whether what is called makes an array of numbers alone: ``torch.tensor(x)``, NumPy's functions."""
        fact = self.inference.fact(function)
        if not isinstance(fact, Qual):
            return False
        copies = any(fact.name in names for names in (*_MADE_OF_VALUES, _OF_SHAPE)) and fact.name not in _MAY_SHARE
        return copies or fact.name.startswith("numpy.")

    def _flows_from(self, node: ast.ListComp | ast.GeneratorExp) -> bool:
        """Whether gradients flow from what a comprehension walks: ``[v.detach() for v in h]`` cuts them off."""
        targets = set[str]().union(*map(_targets, node.generators))
        return any(isinstance(n, ast.Name) and n.id in targets for n in self.uncut(node.elt))

    def _detaches(self, call: ast.Call) -> bool:
        """Whether a function of the file gives nothing of its arguments that gradients flow through."""
        info = function_run_by(self.inference, call)
        if info is None or info.external:
            return False
        if info.node not in self._cuts:
            self._cuts[info.node] = True  # what it calls itself with is given by its other ways out
            returned = [
                n.value for n in symbols.own_nodes(info.node) if isinstance(n, ast.Return) and n.value is not None
            ]
            if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in symbols.own_nodes(info.node)):
                returned = []
            names = (n for value in returned for n in self.uncut(value) if isinstance(n, ast.Name))
            self._cuts[info.node] = bool(returned) and not any(
                n.id in self.source.symbols.bound(info.node) for n in names
            )
        return self._cuts[info.node]

    def _is_cut(self, node: ast.expr) -> bool:
        """Whether what is read is cut off where it is read: ``torch.stack(self.log_probs).detach()``."""
        if self._without_gradient(node):
            return True
        below: ast.AST = node
        for at in ancestors(node, self.source.parents):
            if isinstance(at, ast.stmt):
                return False
            if isinstance(at, ast.Attribute) and at.value is below and at.attr in _CUTS:
                return True
            if isinstance(at, ast.Call) and isinstance(at.func, ast.Name) and at.func.id == "len":
                return True
            below = at
        return False

    def _without_gradient(self, node: ast.AST) -> bool:
        """Whether code runs without gradients."""
        for at in ancestors(node, self.source.parents):
            if isinstance(at, ast.With) and any(self._is_switch(item.context_expr) for item in at.items):
                return True
            if isinstance(at, ast.FunctionDef):
                return any(map(self._is_switch, at.decorator_list))
        return False

    def _is_without(self, info: FunctionInfo) -> bool:
        return any(map(self._is_switch, info.node.decorator_list))

    def _is_switch(self, node: ast.expr) -> bool:
        fact = self.inference.fact(node.func if isinstance(node, ast.Call) else node)
        return context_name(fact, node) in names_with(Trait.NO_GRADIENT)

    # --- names ----------------------------------------------------------------------------------------------------

    def _home(self, node: ast.expr) -> ast.AST | None:
        return self.source.home(node) if isinstance(node, ast.Name) else None

    def _given(self, node: ast.Name) -> list[_Value]:
        """What a variable is given in the function that it stands in, with the statements; of a comprehension none."""
        for at in ancestors(node, self.source.parents):
            if isinstance(at, ast.stmt):
                break
            if isinstance(at, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
                if any(node.id in _targets(one) for one in at.generators):
                    return []
        return self._assigned.get((nearest(ast.FunctionDef, node, self.source.parents), node.id), [])

    @cached_property
    def _assigned(self) -> dict[tuple[ast.AST | None, str], list[_Value]]:
        assigned: dict[tuple[ast.AST | None, str], list[_Value]] = {}
        for node in self.source.nodes:
            match node:
                case ast.Assign(targets=targets, value=value):
                    pass
                case ast.For(target=target, iter=value):
                    targets = [target]
                case _:
                    continue
            function = nearest(ast.FunctionDef, node, self.source.parents)
            pairs = [(target, value) for target in targets]
            if isinstance(node, ast.Assign):
                pairs = [pair for target in targets for pair in given_each(self.inference, target, value)]
            for target, given in pairs:
                for name in (n for n in symbols.walk(target) if isinstance(n, ast.Name)):
                    assigned.setdefault((function, name.id), []).append((node, given))
        return assigned

    def _class_around(self, node: ast.AST) -> ClassInfo | None:
        around = nearest(ast.ClassDef, node, self.source.parents)
        return self.inference.classes.get(around) if around is not None else None


class _Updated:
    """Modules that a step updates: their names, and their classes."""

    def __init__(self, names: set[str], classes: set[ClassInfo], unknown: bool) -> None:
        self.names = names
        self.classes = classes
        self.unknown = unknown
        """Whether any module may be one of them."""


def _targets(node: ast.comprehension) -> set[str]:
    """The variables of a part of a comprehension."""
    return {n.id for n in symbols.walk(node.target) if isinstance(n, ast.Name)}


def _key(node: ast.expr) -> str:
    """The last name of ``self.agent.saved``."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _names_one(node: ast.expr, names: set[str]) -> bool:
    """Whether something is called, or one of its methods, that bears one of these names: ``self.net``, ``net.act``."""
    return _key(node) in names or isinstance(node, ast.Attribute) and _key(node.value) in names
