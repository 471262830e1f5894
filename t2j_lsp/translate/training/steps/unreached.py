"""Parameters that a step doesn't reach: PyTorch's optimizers leave them as they are, optax moves on or decays them.

What no step of an optimizer reaches has no gradient in PyTorch, and a gradient of zeros in JAX: only decay changes it,
so it isn't decayed. What some steps reach, and others do not, moves on in JAX by what the optimizer remembers: such
steps are left.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.call_sites import bound_arguments, defaults, spreads
from t2j_lsp.translate.rule.definitions import ClassInfo, FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import AnyModule, Fact, Layer, ListOf, Qual, Tuple
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.training.program.objects import Objects, VariableScope

from .reached import Part, ReachedParts, Reaching, Untold, classes_of
from .step_values import VARYING, Known, ValuesOfSteps, stored_names
from .update import Optimized, Update

UNEVEN = (
    "Not every step of {0} reaches the same parameters, {1!r} among them: PyTorch leaves those as they are that a step"
    " doesn't reach, optax moves them on by what it remembers. Give them an optimizer of their own."
)
DECAYED = "No step reaches {1!r}, which {0} therefore leaves as it is in PyTorch, and optax decays: freeze it."
_LOOPS = ast.For | ast.While | ast.AsyncFor


@dataclass(eq=False)
class PlannedStep:
    """One update of the file, and what its losses are computed by."""

    update: Update
    scope: VariableScope
    place: ast.stmt
    """The statement that it is written in place of."""

    @property
    def code(self) -> list[ast.stmt]:
        """What moves into the step."""
        items = self.update.items
        return [items[i].node for i in sorted({*self.update.slice.moved, *self.update.slice.split})]

    @property
    def losses(self) -> list[ast.expr]:
        """What is differentiated."""
        return [loss for _, loss in self.update.losses]


@dataclass
class Unreached:
    """Looks at all steps of a file, once they are planned."""

    ctx: Context
    objects: Objects
    steps: list[PlannedStep] = field(default_factory=list)

    def plan(self) -> None:
        """Find the steps that are left, and say of what no step reaches that it isn't decayed."""
        by_optimizer: dict[ast.Call, list[tuple[PlannedStep, Optimized]]] = {}
        for step in self.steps:
            for one in step.update.optimized:
                made = (
                    self.objects.constructors(ast.parse(one.text, mode="eval").body, step.scope) if one.text else None
                )
                for call in made or ():
                    by_optimizer.setdefault(call, []).append((step, one))
        for call, updates in by_optimizer.items():
            self._look_at(call, updates)

    def _look_at(self, call: ast.Call, updates: Sequence[tuple[PlannedStep, Optimized]]) -> None:
        plan = self.ctx.plan.optimizers.get(call)
        if plan is None or any(one.part or one.flagged or one.state for _, one in updates):
            return
        if plan.part or plan.flagged or any(group.frozen for group in plan.groups) or takes_plain_steps(self.ctx, call):
            return
        classes = self._classes(updates)
        if not classes:
            return
        try:
            reached = [r for step in dict.fromkeys(s for s, _ in updates) for r in self._reached(step)]
        except Untold:
            return
        name = updates[0][1].text
        never: list[Part] = []
        for part in dict.fromkeys(part for cls in classes for part in self._parts(cls)):
            held = {one.holds(part) for one in reached}
            if held == {False}:
                never.append(part)
            elif False in held:
                self._leave(updates, UNEVEN.format(name, part[1]))
                return
        if not never:
            return
        alone = all(len(one.modules) == 1 for _, one in updates)
        condition = self._condition(classes[0], never) if alone else None
        if condition is None:
            if self._decays(call):
                self._leave(updates, DECAYED.format(name, never[0][1]))
            return
        self.ctx.plan.optimizers[call] = replace(plan, undecayed=condition)

    def _leave(self, updates: Iterable[tuple[PlannedStep, Optimized]], reason: str) -> None:
        self.ctx.plan.left |= {step.place: reason for step, _ in updates}

    # --- optimizers and their modules -----------------------------------------------------------------------------

    def _decays(self, call: ast.Call) -> bool:
        """Whether an optimizer may decay its parameters."""
        fact = self.ctx.fact(call.func)
        decays = isinstance(fact, Qual) and fact.name in names_with(Trait.DECAYS)
        return decays or len(call.args) > 2 or any(k.arg is None or "decay" in k.arg for k in call.keywords)

    def _classes(self, updates: Sequence[tuple[PlannedStep, Optimized]]) -> list[ClassInfo]:
        """The classes of an optimizer's modules, as far as steps tell them; none where they tell different ones."""
        if len({len(one.modules) for _, one in updates}) > 1:
            return []
        out: list[ClassInfo] = []
        for index in range(len(updates[0][1].modules)):
            classes = {self._class_of(one.modules[index], step) for step, one in updates} - {None}
            if len(classes) > 1:
                return []
            out += [cls for cls in classes if cls is not None]
        return out

    def _class_of(self, module: str, step: PlannedStep) -> ClassInfo | None:
        """The class of a module of a step, if it is one of the file."""
        nodes = [n for part in (*step.code, *step.losses) for n in symbols.walk(part)]
        facts = [self.ctx.fact(n) for n in nodes if isinstance(n, ast.expr) and ast.unparse(n) == module]
        classes = {fact.cls.info if isinstance(fact, Instance) else None for fact in facts}
        cls = classes.pop() if len(classes) == 1 else None
        return None if cls is None or any(one.external for one in cls.ancestry()) else cls

    def _parts(self, cls: ClassInfo) -> Iterator[Part]:
        """The attributes with parameters of a module, and of its parts."""
        for info in classes_of(cls):
            if info.external or not info.is_module:
                continue
            made = self._parameters(info)
            for name, fact in info.attributes.items():
                if name in made or _has_parameters(fact):
                    yield info, name

    def _parameters(self, info: ClassInfo) -> set[str]:
        """The attributes that are parameters themselves."""
        out: set[str] = set()
        for node in symbols.walk(info.node):
            match node:
                case ast.Assign(targets=[ast.Attribute(attr=attr)], value=ast.Call(func=func)):
                    fact = self.ctx.fact(func)
                    if isinstance(fact, Qual) and fact.name in names_with(Trait.MAKES_PARAMETER):
                        out.add(attr)
        return out

    def _condition(self, cls: ClassInfo, never: Sequence[Part]) -> str | None:
        """The condition on the names of parameters that no step reaches; None if their names aren't known."""
        tests = []
        for info, attribute in never:
            parameter = attribute in self._parameters(info)
            if info in cls.ancestry():
                tests.append(f'name == "{attribute}"' if parameter else f'name.startswith("{attribute}.")')
            elif any(one not in never and one[1] == attribute for one in self._parts(cls)):
                return None  # others are called so, too
            else:
                tests.append(f'name.endswith(".{attribute}")' if parameter else f'".{attribute}." in name')
        return " or ".join(dict.fromkeys(tests))

    # --- what a step reaches --------------------------------------------------------------------------------------

    def _reached(self, step: PlannedStep) -> Iterator[ReachedParts]:
        """What a step reaches, for each way that it may go. Raises Untold."""
        reaching = Reaching(self._values)
        for known in self._contexts(step):
            both = reaching.reached(step.code, step.losses, known, {})
            if not both.tests:
                yield both
            for test in both.tests:
                for goes in (True, False):
                    yield reaching.reached(step.code, step.losses, known, {test: goes})

    @cached_property
    def _values(self) -> ValuesOfSteps:
        """What the attributes of modules are: set outside of constructors they change, else they may be constants."""
        varying: set[str] = set()
        given: dict[str, set[tuple[object] | None]] = {}
        owners: dict[str, set[ClassInfo | None]] = {}
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                function = self.objects.scope(node).function
                if function is not None and function.name == "__init__":
                    given.setdefault(node.attr, set()).update(self._given(node, function))
                    owners.setdefault(node.attr, set()).add(function.owner)
                elif is_module(self.ctx.fact(node.value)):
                    sides = self._sides(node)
                    if sides == {True, False}:
                        varying.add(node.attr)
                    elif True in sides:
                        given.setdefault(node.attr, set()).add(None)
        unsure = {name for name, classes in owners.items() if len(classes) > 1} | self._bound_in_classes
        constants = {
            name: one
            for name, values in given.items()
            if len(values) == 1 and (one := next(iter(values))) and name not in unsure and not self._sets_any
        }
        return ValuesOfSteps(self.ctx.inference, varying, constants)

    @cached_property
    def _bound_in_classes(self) -> set[str]:
        """The names that bodies of classes bind: methods, properties, attributes of the class."""
        classes = [n for n in self.ctx.source.nodes if isinstance(n, ast.ClassDef)]
        return {name for node in classes for name, _ in symbols.bindings(node.body)}

    @cached_property
    def _sets_any(self) -> bool:
        """Whether the file sets attributes by names that it computes."""
        words = {n.id for n in self.ctx.source.nodes if isinstance(n, ast.Name)} | {*self.ctx.source.attributes}
        return not words.isdisjoint({"setattr", "__setattr__", "__dict__", "vars"})

    def _sides(self, node: ast.expr) -> set[bool]:
        """Whether steps run behind a statement, and in front of it."""
        scope = self.objects.scope(node)
        looped = any(isinstance(a, _LOOPS) for a in ancestors(node, self.ctx.source.parents))
        if scope.function is not None or looped:
            return {True, False}
        sides: set[bool] = set()
        for step in self.steps:
            function = step.scope.function
            places = [step.place] if function is None else [*self.objects.calls(function)]
            if not places or any(self.objects.scope(place).function is not None for place in places):
                return {True, False}
            sides |= {place.lineno > node.lineno for place in places}
        return sides

    def _given(self, node: ast.Attribute, function: FunctionInfo) -> Iterator[tuple[object] | None]:
        """The constants that a constructor gives an attribute; None for what isn't one."""
        match self.ctx.source.parents.get(node):
            case ast.Assign(targets=[_], value=ast.Constant(value=bool() | str() | None as value)):
                yield (value,)
            case ast.Assign(targets=[_], value=ast.Name(id=name)) if name not in stored_names(function.node):
                values = {p.arg: v for p, v in defaults(function)}
                calls = [*self.objects.calls(function)]
                for call in calls:
                    one = {**values, **{p.arg: v for p, v in bound_arguments(call, function)}}.get(name)
                    plain = isinstance(one, ast.Constant) and not spreads(call)
                    yield (one.value,) if plain and isinstance(one.value, bool | str | None) else None  # type: ignore[union-attr]
                if not calls or function.owner is None or self._is_subclassed(function.owner):
                    yield None
            case _:
                yield None

    def _is_subclassed(self, cls: ClassInfo) -> bool:
        return any(cls in one.ancestry() for one in self.ctx.inference.classes.values() if one is not cls)

    def _contexts(self, step: PlannedStep) -> Iterator[Known]:
        """What is known of the variables around a step, for each call of the function that it stands in."""
        varying = dict.fromkeys(self._varying(step.place, step), VARYING)
        function = step.scope.function
        calls = [*self.objects.calls(function)] if function is not None else []
        if function is None or not calls:
            yield varying
            return
        known_values = ValuesOfSteps(self.ctx.inference)
        written = stored_names(function.node)
        if not self._are_all(function, calls):
            yield varying
            return
        for call in calls:
            around = dict.fromkeys(self._varying(call), VARYING)
            values = {p.arg: known_values.value(v, {}) for p, v in defaults(function)}
            values |= {p.arg: known_values.value(v, around) for p, v in bound_arguments(call, function)}
            known = {n: v if v is VARYING else v[0] for n, v in values.items() if v is not None and n not in written}  # type: ignore[index]
            yield {**known, **varying}

    def _are_all(self, function: FunctionInfo, calls: Sequence[ast.Call]) -> bool:
        """Whether the calls are all that run a function, and say what they give it."""
        if any(map(spreads, calls)):
            return False
        called = {call.func for call in calls}
        named = [*self.ctx.source.names.get(function.name, ()), *self.ctx.source.attributes.get(function.name, ())]
        return all(n in called for n in named if isinstance(n.ctx, ast.Load))

    def _varying(self, node: ast.AST, step: PlannedStep | None = None) -> Iterator[str]:
        """The variables that have another value in each round of the loops around a place."""
        scope = self.objects.scope(node)
        inside = {n for part in step.code for n in symbols.walk(part)} if step is not None else set()
        for loop in ancestors(node, self.ctx.source.parents):
            if isinstance(loop, ast.FunctionDef | ast.AsyncFunctionDef):
                return
            if isinstance(loop, _LOOPS):
                for name in symbols.walk(loop):
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store) and name not in inside:
                        if self.objects.scope(name) == scope:
                            yield name.id


def takes_plain_steps(context: Context, call: ast.Call) -> bool:
    """Whether an optimizer only takes steps along the gradient: SGD without momentum and weight decay."""
    fact = context.fact(call.func)
    plain = len(call.args) <= 2 and {k.arg for k in call.keywords} <= {"params", "lr"}
    return isinstance(fact, Qual) and fact.name in names_with(Trait.PLAIN_STEPS) and plain


def _has_parameters(fact: Fact) -> bool:
    match fact:
        case Layer(name=name, items=items):
            return any(map(_has_parameters, items)) if items else name in names_with(Trait.LEARNS)
        case Instance():
            return is_module(fact) and any(
                _has_parameters(one) for info in classes_of(fact.cls.info) for one in info.attributes.values()
            )
        case Tuple(items=items):
            return any(map(_has_parameters, items))
        case ListOf(item=item):
            return _has_parameters(item)
        case AnyModule(names=names):
            return not names.isdisjoint(names_with(Trait.LEARNS))
    return False
