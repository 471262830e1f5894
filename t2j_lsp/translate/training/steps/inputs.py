"""What a train step takes: modules, arrays, Python values that must be known when it is traced, functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.forward_pass import UnknownParameter
from t2j_lsp.translate.rule.array_classes import is_data
from t2j_lsp.translate.rule.definitions import Class, Function, Instance, is_module
from t2j_lsp.translate.rule.facts import (
    UNKNOWN,
    AnyModule,
    Fact,
    ListOf,
    MixedDict,
    Object,
    Qual,
    Scalar,
    Tensor,
    Tuple,
)
from t2j_lsp.translate.rule.library import is_loss, stands_alone
from t2j_lsp.translate.rule.tensors import is_array_tree
from t2j_lsp.translate.source.positions import position
from t2j_lsp.translate.training.data.masks import pass_positions
from t2j_lsp.translate.training.data.sample_parts import is_mixed
from t2j_lsp.translate.training.program.flow import DataFlow
from t2j_lsp.translate.training.program.given_functions import is_function
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.once import given_arrays
from t2j_lsp.translate.training.program.passed import Input, Kind, PassedOn
from t2j_lsp.translate.training.program.static_values import (
    given_as_tuple,
    has_settings,
    is_called,
    items_decide,
    must_be_static,
    names_loss,
)
from t2j_lsp.translate.training.program.step_calls import Refused

from .host_numbers import name_of_number
from .host_values import is_numpy
from .made_inputs import MadeInputs, as_said, held, pairs_positions
from .traced_extremes import TracedExtremes

PLACES = "device", "dtype", "generator"
"""Kinds of values that say where and how arrays are made, which JAX's code seldom does."""


class Inputs:
    """Finds the variables that moved code takes from around it."""

    def __init__(
        self, context: Context, flow: DataFlow, scope: VariableScope, objects: Objects, compiled: bool = True
    ) -> None:
        self.compiled = compiled
        """Whether the code is; else it may be given anything."""
        self.ctx = context
        self.flow = flow
        self.scope = scope
        self.objects = objects
        self.local: set[str] = set()
        """What the function binds, and the functions around it: the step stands outside of them."""
        for function in scope.functions:
            self.local |= context.source.symbols.bound(function.node)
        self.taken: set[str] = set()
        self.parts: Sequence[ast.AST] = ()
        self.extremes = TracedExtremes(context.inference, context.plan)
        self.made = MadeInputs(context, flow, self._is_constant, lambda text: text in objects.trained.leaves)

    def of(self, parts: Sequence[ast.AST], modules: Iterable[str], kept: Iterable[str] = ()) -> dict[str, Input]:
        """Inputs of code that runs in this order, by the expression passed. Raises Refused.

        ``modules`` are passed whether the code names them or not, and arrays that it ``kept`` where it gives none.
        """
        inputs: dict[str, Input] = {}
        self.parts = self.made.parts = parts
        names = {n.id for part in parts for n in symbols.walk(part) if isinstance(n, ast.Name)}
        self.taken = {n for n in names if n != self.flow.self_name}
        for text in modules:
            inputs[text] = Input(self._name(text), text, "module")
            self._check_module(text, parts)
        defined: set[str] = set()
        around = self._around(parts)
        for part in parts:
            exposed = self.flow.exposed(part) - defined  # what the moved code itself gives a value can't be passed
            if any(isinstance(n, ast.For | ast.AsyncFor | ast.While | ast.Try) for n in symbols.walk(part)):
                exposed |= self.flow.reads(part) & around - defined  # where a loop doesn't run
            for node in sorted((n for n in symbols.walk(part) if isinstance(n, ast.expr)), key=position):
                if isinstance(node, ast.Call) and node in self.flow.passed:
                    self._add_passed(self.flow.passed[node], exposed, inputs)
                elif self.flow.variable(node) in exposed and (_is_load(node) or self._is_added_to(node)):
                    if self.compiled and (made := self._made(node, exposed)) is not None:
                        self._add_made(node, made, inputs)
                    else:
                        self._add(node, inputs)
            defined |= self.flow.writes(part)
        for text in kept:
            if text not in inputs:
                inputs[text] = Input(self._name(text), text, "array")
        if not self.compiled:
            return inputs
        for one in inputs.values():
            if one.kind in ("array", "static") and one.places:
                one.kind = self._value_kind(one)
        self._pass_positions(inputs, parts)
        return inputs

    def _pass_positions(self, inputs: dict[str, Input], parts: Sequence[ast.AST]) -> None:
        pass_positions(self.ctx.inference, inputs, parts)

    def _check_module(self, text: str, parts: Sequence[ast.AST]) -> None:
        """Raises Refused if what holds the modules that are updated is no module: ``agent`` of ``agent.net``."""
        for node in (n for part in parts for n in symbols.walk(part)):
            if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) == text:
                fact = self.ctx.fact(node)
                if isinstance(fact, Instance) and not is_module(fact):
                    raise Refused(
                        f"{text} holds the modules that are updated, and can't be passed to a compiled function."
                    )

    def _is_added_to(self, node: ast.expr) -> bool:
        """Whether it is ``total`` of ``total += reward``, which reads what it gives a new value."""
        parent = self.ctx.source.parents.get(node)
        return isinstance(parent, ast.AugAssign) and parent.target is node

    def _around(self, parts: Sequence[ast.AST]) -> set[str]:
        """The variables that something else than some parts of the code gives a value, before the last of them."""
        moved = {node for part in parts for node in symbols.walk(part)}
        scope = self.scope.function.node if self.scope.function is not None else self.ctx.source.tree
        last = max((position(node) for node in moved if isinstance(node, ast.expr)), default=(0, 0))
        return set(self._given_in(scope, moved, last, frozenset()))

    def _given_in(
        self, node: ast.AST, moved: set[ast.AST], last: tuple[int, int], inner: frozenset[str]
    ) -> Iterator[str]:
        """The variables that get a value inside ``node``; ``inner`` are names of functions in it, which are others."""
        for child in symbols.children(node):
            if child in moved or (isinstance(child, ast.expr | ast.stmt) and position(child) > last):
                continue
            own = inner
            match child:
                case ast.Name() | ast.Attribute() if not isinstance(child.ctx, ast.Load):
                    given = self.flow.variable(child) or ""
                case ast.arg(arg=given):
                    pass
                case ast.alias():
                    given = symbols.bound_as(child)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    given, own = child.name, inner | self.ctx.source.symbols.bound(child)
                case ast.ClassDef():
                    given = child.name
                case _:
                    given = ""
            if given and given not in inner:
                yield given
            yield from self._given_in(child, moved, last, own)

    def optimizer(self, text: str) -> Input:
        """The optimizer as a parameter of the step."""
        if text.rpartition(".")[2].isidentifier():
            return Input(self._name(text), text, "optimizer")
        return Input(self._name(".optimizer"), text, "optimizer", given=text.replace("'", '"'))  # opts["critic"]

    def _name(self, text: str) -> str:
        """A parameter's name: the last part of ``self.model``."""
        wanted = text.rpartition(".")[2] if text != "self" else "model"
        name, count = wanted, 1
        while text != name and (name in self.taken or name in self.ctx.names.reserved):
            count += 1
            name = f"{wanted}{count}"
        self.taken.add(name)
        return name

    def _add_passed(self, passed: PassedOn, exposed: set[str], inputs: dict[str, Input]) -> None:
        """What a call passes to a function that used to read it from outside, but for what the code has made itself."""
        for one in passed.inputs:
            text = passed.texts[one.text]
            if self.flow.root(ast.parse(text, mode="eval").body) not in exposed:
                continue
            if text not in inputs:
                inputs[text] = Input(self._name(text), text, one.kind)
            inputs[text].places += [place for place in one.places if place not in inputs[text].places]

    def _made(self, node: ast.expr, exposed: set[str]) -> ast.expr | None:
        """What is made of a variable where code is called, and passed in its place."""
        return self.made.of(node, exposed)

    def _add_made(self, node: ast.expr, made: ast.expr, inputs: dict[str, Input]) -> None:
        text = ast.unparse(made)
        if text not in inputs:
            inputs[text] = Input(self._name_of_made(node, made), text, "array", given=text)
        if made not in inputs[text].places:
            inputs[text].places.append(made)

    def _name_of_made(self, node: ast.expr, made: ast.expr) -> str:
        if isinstance(made, ast.Subscript):
            if isinstance(made.slice, ast.Constant) and isinstance(key := made.slice.value, str) and key.isidentifier():
                return self._name(f".{key}")  # batch["image"]
            return self._name_of_part(made, held(made) or node)
        if name := name_of_number(self.ctx.inference, made):
            return self._name(f".{name}")
        if not isinstance(made, ast.Call):
            return self._name_of_part(made, node)
        if made.args and isinstance(made.args[0], ast.Attribute) and made.args[0] is not node:
            return self._name(f".{made.args[0].attr}")  # torch.tensor(batch.reward)
        return self._name(".batch") if self.made.next_of(node) is not None else self._name_of_part(made, node)

    def _name_of_part(self, part: ast.expr, value: ast.expr) -> str:
        """The name of the value that something is made of, where nothing else of it is read."""
        name, text = ast.unparse(value), ast.unparse(part)
        reads = [n for at in self.parts for n in symbols.walk(at) if isinstance(n, ast.Name) and n.id == name]
        if name.isidentifier() and all(text in map(ast.unparse, self._around_of(n)) for n in reads):
            return name
        return self._name(f".{name}")

    def _around_of(self, node: ast.AST) -> list[ast.AST]:
        return [at for at in ancestors(node, self.ctx.source.parents) if isinstance(at, ast.Call | ast.Subscript)]

    # --- one variable ---------------------------------------------------------------------------------------------

    def _add(self, node: ast.expr, inputs: dict[str, Input]) -> None:
        fact = self.ctx.fact(node)
        if isinstance(fact, Qual | Class):
            return
        if isinstance(fact, Object) and fact.kind in PLACES:
            if self._is_handed_on(node, fact):
                text = ast.unparse(node)
                inputs.setdefault(text, Input(self._name(text), text, "static")).places.append(node)
            return
        whole = self._module_text(node, inputs)
        if whole is not None:
            inputs[whole].places.append(node)
            return
        variable = self.flow.variable(node)
        assert variable is not None
        place = self._chain(node, fact)
        if self._stays_global(variable, fact) and not self._is_set(node, place):
            return
        text = ast.unparse(place)
        if text not in inputs:
            inputs[text] = Input(self._name(text), text, self._kind(place, fact))
        inputs[text].places.append(place)

    def _is_handed_on(self, node: ast.expr, fact: Object) -> bool:
        """Whether a device of a function around is an argument of the user's own function, whose parameter stays.

        A dtype is asked for and cast to, and always handed on.
        """
        variable, call = self.flow.variable(node) or "", self.ctx.source.parents.get(node)
        if isinstance(call, ast.keyword):
            call = self.ctx.source.parents.get(call)
        local = fact.kind != "generator" and ("." in variable or variable in self.local)
        given = isinstance(call, ast.Call) and isinstance(self.ctx.fact(call.func), Function)
        return local and (given or fact.kind == "dtype")

    def _module_text(self, node: ast.expr, inputs: dict[str, Input]) -> str | None:
        """The module among the inputs that a node names."""
        text = ast.unparse(node)
        one = inputs.get(text)
        return text if one is not None and one.kind == "module" else None

    def _stays_global(self, variable: str, fact: Fact) -> bool:
        """Whether the compiled function may read a variable of the module level directly: a constant."""
        if "." in variable or variable in self.local:
            return False
        if variable not in self.ctx.inference.env:
            return True
        if isinstance(fact, Function):
            return True
        if isinstance(fact, Object | Tensor) or (is_module(fact) and not is_loss(fact)):
            return False  # an array that isn't passed would be compiled into the step
        if variable in self.objects.trained.leaves and is_array_tree(fact):
            return False
        return self.constant(variable)

    def _is_set(self, node: ast.expr, place: ast.expr) -> bool:
        """Whether ``args.beta``, of an ``args`` of the module level, changes while the program runs. Raises Refused."""
        item = self.ctx.source.parents.get(place)
        if isinstance(item, ast.Subscript) and item.value is place and ast.unparse(item) in self._changing:
            raise Refused(f"the loss is computed with {ast.unparse(item)}, which changes")
        return place is not node and ast.unparse(place) in self._changing

    @cached_property
    def _changing(self) -> set[str]:
        """Attributes and items that functions or loops set."""
        stored = [n for n in self.ctx.source.nodes if isinstance(n, ast.Attribute | ast.Subscript) and not _is_load(n)]
        return {ast.unparse(n) for n in stored if self._runs_again(n)}

    def _runs_again(self, node: ast.AST) -> bool:
        """Whether code stands in a function or a loop."""
        again = ast.For | ast.While | ast.FunctionDef | ast.AsyncFunctionDef
        return any(isinstance(at, again) for at in ancestors(node, self.ctx.source.parents))

    def _is_constant(self, name: str) -> bool:
        return name not in self.local and self.constant(name)

    def constant(self, name: str) -> bool:
        """Whether the module level binds a name once, outside loops, and no function rebinds it or adds arrays."""
        if name in self._growing:
            return False
        bound = 0
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Global) and name in node.names:
                return False
            if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
                if self.objects.scope(node).function is not None:
                    continue
                bound += 1
                around = ancestors(node, self.ctx.source.parents)
                if any(isinstance(at, ast.For | ast.While | ast.AugAssign) for at in around):
                    return False
        return bound <= 1

    @cached_property
    def _growing(self) -> set[str]:
        """Lists that functions or loops add arrays to."""
        added = ((n, given_arrays(self.ctx.inference, n)) for n in self.ctx.source.nodes)
        return {name for node, name in added if name is not None and self._runs_again(node)}

    def _chain(self, node: ast.expr, fact: Fact) -> ast.expr:
        """``args.alpha`` as a whole: the object it is read from can't be passed to a compiled function."""
        place = node
        while True:
            known = self.ctx.fact(place)
            if is_module(known) or isinstance(known, Tensor | ListOf | Tuple | Scalar) or stands_alone(known):
                return place
            parent = self.ctx.source.parents.get(place)
            if not isinstance(parent, ast.Attribute) or parent.value is not place:
                return place
            outer = self.ctx.source.parents.get(parent)
            if isinstance(outer, ast.Call) and outer.func is parent:
                return place
            place = parent

    def _kind(self, place: ast.expr, fact: Fact) -> Kind:
        known = self.ctx.fact(place)
        if not self.compiled or self.objects.trained.holds(place):
            return "module" if self.objects.trained.is_model(place) else "array"
        if is_module(known):
            return "function" if is_loss(known) or known == AnyModule() and names_loss(place) else "module"
        if is_numpy(known) and pairs_positions(self.ctx.inference, place):
            return "array"
        if isinstance(known, Object) and not stands_alone(known):
            raise Refused(f"the loss is computed with {ast.unparse(place)}, {as_said(known)}")
        if isinstance(known, Function):
            kind = (
                "a method of an object that isn't passed"
                if known.info.owner
                else "a function that is defined inside another"
            )
            raise Refused(f"the loss is computed with {ast.unparse(place)}, {kind}")
        if is_mixed(known) and not self.made.is_read_for_arrays(place):
            raise Refused(f"the loss is computed with {ast.unparse(place)}, which may hold texts beside its tensors")
        if isinstance(known, Instance) and not is_data(known):
            raise Refused(
                f"the loss is computed with {ast.unparse(place)}, whose object can't be passed to a compiled function"
            )
        return "array"

    def _value_kind(self, one: Input) -> Kind:
        """Whether a value is traced, or known when the step is traced."""
        facts = [self.ctx.fact(p) for p in one.places]
        if is_called(one.places, self.ctx.inference, names_loss(one.places[0])):
            return "function"
        if items_decide(one.places, self.ctx.inference):
            raise Refused(f"items of {one.text} decide what is computed: give them to functions one by one")
        one.texts, one.mixed = given_as_tuple(facts), any(is_mixed(f) for f in facts)
        if not one.texts and any(
            isinstance(f, Tensor | ListOf | Tuple | MixedDict) or is_module(f) or stands_alone(f) or is_data(f)
            for f in facts
        ):
            return "array"
        if not one.texts and has_settings(one.places, self.ctx.inference):
            raise Refused(f"a function is given {one.text}, an object that can't be passed to a compiled function")
        if one.texts or any(
            isinstance(f, Scalar | Object) and f.kind in ("str", "bool", "device", "dtype") for f in facts
        ):
            return "static"
        if all(f == UNKNOWN for f in facts) and is_called(one.places, self.ctx.inference, True):
            if is_function(self.objects, one.places[0], self.scope):
                return "function"
            raise Refused(f"a function calls {one.text}, of which it isn't known whether it is a module")
        if any(isinstance(f, Scalar) or f == UNKNOWN or isinstance(f, UnknownParameter) for f in facts):
            static = must_be_static(one.places, self.ctx.inference)
            return "static" if static and not self.extremes.take(one.places) else "array"
        return "array"


def _is_load(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Load)
