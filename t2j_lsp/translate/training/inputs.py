"""What a train step takes: modules, arrays, Python values that must be known when it is traced, functions."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.forward_pass import UnknownParameter
from t2j_lsp.translate.rule.facts import (
    STR,
    UNKNOWN,
    AnyModule,
    Class,
    Fact,
    Function,
    Instance,
    ListOf,
    Object,
    Qual,
    Scalar,
    Tensor,
    Tuple,
    is_module,
)
from t2j_lsp.translate.rule.library import is_loss

from .flow import DataFlow
from .host_values import made_of_host_values, makes_array, takes_next
from .masks import pass_positions
from .objects import Objects, VariableScope
from .once import GROWING, takes_arrays
from .passed import Input, Kind, PassedOn
from .static_values import given_as_tuple, has_settings, is_called, must_be_static
from .step_calls import Refused

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
        function = scope.function
        while function is not None:
            self.local |= context.source.symbols.bound(function.node)
            function = function.outer
        self.taken: set[str] = set()
        self.parts: Sequence[ast.AST] = ()

    def of(self, parts: Sequence[ast.AST], modules: Iterable[str]) -> dict[str, Input]:
        """Inputs of code that runs in this order, by the expression passed. Raises Refused.

        ``modules`` are passed whether the code names them or not.
        """
        inputs: dict[str, Input] = {}
        self.parts = parts
        names = {n.id for part in parts for n in symbols.walk(part) if isinstance(n, ast.Name)}
        self.taken = {n for n in names if not self._is_self(n)}
        for text in modules:
            inputs[text] = Input(self._name(text), text, "module")
            self._check_module(text, parts)
        defined: set[str] = set()
        around = self._around(parts)
        for part in parts:
            # What only the moved code itself gives a value can't be passed; it is read where that has happened.
            exposed = {n for n in self.flow.reads(part) if n in around or n in self.flow.exposed(part)} - defined
            for node in sorted((n for n in symbols.walk(part) if isinstance(n, ast.expr)), key=_position):
                if isinstance(node, ast.Call) and node in self.flow.passed:
                    self._add_passed(self.flow.passed[node], exposed, inputs)
                elif self.flow.variable(node) in exposed and (_is_load(node) or self._is_added_to(node)):
                    made = self._made(node, exposed)
                    if made is not None:
                        self._add_made(node, made, inputs)
                    else:
                        self._add(node, inputs)
            defined |= self.flow.writes(part)
        for one in inputs.values() if self.compiled else ():
            if one.kind in ("array", "static"):
                one.kind = self._value_kind(one)
        if not self.compiled:
            return inputs
        pass_positions(self.ctx.inference, inputs, parts)
        return inputs

    def _check_module(self, text: str, parts: Sequence[ast.AST]) -> None:
        """Raises Refused if what holds the modules that are updated is no module: ``agent`` of ``agent.net``."""
        for node in (n for part in parts for n in ast.walk(part)):
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
        """The variables that something else than some parts of the code gives a value."""
        moved = {node for part in parts for node in symbols.walk(part)}
        scope = self.scope.function.node if self.scope.function is not None else self.ctx.source.tree
        return set(self._given_in(scope, moved, frozenset()))

    def _given_in(self, node: ast.AST, moved: set[ast.AST], inner: frozenset[str]) -> Iterator[str]:
        """The variables that get a value inside ``node``; ``inner`` are names of functions in it, which are others."""
        for child in symbols.children(node):
            if child in moved:
                continue
            own = inner
            match child:
                case ast.Name() | ast.Attribute() if not isinstance(child.ctx, ast.Load):
                    given = self.flow.variable(child) or ""
                case ast.arg(arg=given):
                    pass
                case ast.alias():
                    given = child.asname or child.name.partition(".")[0]
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    given, own = child.name, inner | self.ctx.source.symbols.bound(child)
                case ast.ClassDef():
                    given = child.name
                case _:
                    given = ""
            if given and given not in inner:
                yield given
            yield from self._given_in(child, moved, own)

    def optimizer(self, text: str) -> Input:
        """The optimizer as a parameter of the step."""
        if text.rpartition(".")[2].isidentifier():
            return Input(self._name(text), text, "optimizer")
        return Input(self._name(".optimizer"), text, "optimizer", given=text.replace("'", '"'))  # opts["critic"]

    def _is_self(self, name: str) -> bool:
        return name == self.flow.self_name

    def _name(self, text: str) -> str:
        """A parameter's name: the last part of ``self.model``."""
        wanted = text.rpartition(".")[2] if text != "self" else "model"
        name, count = wanted, 1
        while text != name and (name in self.taken or name in self.ctx.names.reserved):
            count += 1
            name = f"{wanted}{count}"
        self.taken.add(name)
        return name

    def _made(self, node: ast.expr, exposed: set[str]) -> ast.Call | ast.Subscript | None:
        """What is passed in place of a variable: an array that is made of it, a part of the array that it is."""
        if not self.compiled:
            return None
        return self._next_of(node) or self._made_of_values(node, exposed) or self._part_of_array(node, exposed)

    def _next_of(self, node: ast.expr) -> ast.Call | None:
        """``next(batches)`` around an iterator."""
        call = self.ctx.source.parents.get(node)
        return call if isinstance(call, ast.Call) and takes_next(self.ctx.inference, call, self.parts) else None

    def _add_passed(self, passed: PassedOn, exposed: set[str], found: dict[str, Input]) -> None:
        """What a call passes to a function that used to read it from outside, but for what the code has made itself."""
        for one in passed.inputs:
            text = passed.texts[one.text]
            if self.flow.root(ast.parse(text, mode="eval").body) not in exposed:
                continue
            if text not in found:
                found[text] = Input(self._name(text), text, one.kind)
            found[text].places += [place for place in one.places if place not in found[text].places]

    # --- an array that is made on the spot ---------------------------------------------------------------------------

    def _made_of_values(self, node: ast.expr, exposed: set[str]) -> ast.Call | None:
        """``torch.tensor([index[word]])`` around a value that no compiled function takes, made of such values only.

        So ``torch.from_numpy(rows[order])``: numpy's functions take no arrays that are traced; and
        ``torch.tensor(actions)``: a list's numbers would be an argument each.
        """
        fact = self.ctx.fact(node)
        unknown = fact in (UNKNOWN, STR) or isinstance(fact, UnknownParameter) or _whole(fact)
        place: ast.AST | None = node if not isinstance(fact, Qual) else None
        while place is not None and not isinstance(place, ast.stmt | ast.Lambda):
            place = self.ctx.source.parents.get(place)
            if isinstance(place, ast.Call) and makes_array(self.ctx.inference, place):
                if unknown and self._of_values(place, exposed):
                    return place
                made = made_of_host_values(self.ctx.inference, place)
                return place if made and self.flow.reads(place) - self._libraries(place) <= exposed else None
        return None

    def _libraries(self, node: ast.AST) -> set[str]:
        """The names of modules that are imported, and of what they have."""
        return {n.id for n in symbols.walk(node) if isinstance(n, ast.Name) and isinstance(self.ctx.fact(n), Qual)}

    def _of_values(self, call: ast.Call, exposed: set[str]) -> bool:
        """Whether a call takes lists of values that are known before the step, looked up by others."""
        whole = any(_whole(self.ctx.fact(node)) for node in symbols.walk(call.args[0]) if isinstance(node, ast.expr))
        if not whole and not isinstance(call.args[0], ast.List | ast.ListComp):
            return False
        own = {n.id for n in symbols.walk(call) if isinstance(n, ast.Name) and not _is_load(n)}
        for node in symbols.walk(call):
            if isinstance(node, ast.Name) and node.id not in own and not isinstance(self.ctx.fact(node), Qual):
                if isinstance(self.ctx.fact(node), Tensor) or is_module(self.ctx.fact(node)):
                    return False
                if node.id not in exposed:
                    return False
        return whole or any(isinstance(node, ast.Subscript) for node in symbols.walk(call))

    def _part_of_array(self, node: ast.expr, exposed: set[str]) -> ast.Subscript | None:
        """``x[i:i + 16]`` around a name in it, passed as a whole: a step that is given ``i`` is compiled for each.

        So ``x[order]`` with an array of numpy, which may be a mask: its shape isn't known in a compiled function.
        """
        place: ast.AST | None = node
        while isinstance(place, ast.expr | ast.Slice):
            match place:
                case ast.Subscript(ctx=ast.Load()) if (base := _held(place)) is not None and self._varies(
                    place, exposed
                ):
                    facts = [self.ctx.fact(base), self.ctx.fact(place.value)]
                    held = all(isinstance(fact, Tensor) and not fact.variable for fact in facts)
                    return place if held and base.id in exposed else None
            place = self.ctx.source.parents.get(place)
        return None

    def _varies(self, part: ast.Subscript, exposed: set[str]) -> bool:
        """Whether a part of an array is cut by numbers that are known before the step, and change."""
        numpy = any(_is_numpy(self.ctx.fact(n)) for n in symbols.walk(part.slice) if isinstance(n, ast.Name))
        if not numpy and not any(isinstance(n, ast.Slice) for n in symbols.walk(part.slice)):
            return False
        names = [n for n in symbols.walk(part.slice) if isinstance(n, ast.Name) and not hasattr(builtins, n.id)]
        if any(isinstance(n, ast.Attribute | ast.Lambda | ast.comprehension) for n in symbols.walk(part.slice)):
            return False
        if not all(n.id in exposed and not isinstance(self.ctx.fact(n), Tensor) for n in names):
            return False
        return numpy or any(n.id in self.local or not self.constant(n.id) for n in names)

    def _add_made(self, node: ast.expr, made: ast.Call | ast.Subscript, found: dict[str, Input]) -> None:
        text = ast.unparse(made)
        if text not in found:
            found[text] = Input(self._name_of_made(node, made), text, "array", given=text)
        if made not in found[text].places:
            found[text].places.append(made)

    def _name_of_made(self, node: ast.expr, made: ast.Call | ast.Subscript) -> str:
        if isinstance(made, ast.Subscript):
            return self._name_of_part(made, _held(made) or node)
        return self._name(".batch") if self._next_of(node) is not None else self._name_of_part(made, node)

    def _name_of_part(self, part: ast.Call | ast.Subscript, value: ast.expr) -> str:
        """The name of the value that something is made of, where nothing else of it is read."""
        name, text = ast.unparse(value), ast.unparse(part)
        reads = [n for at in self.parts for n in symbols.walk(at) if isinstance(n, ast.Name) and n.id == name]
        if name.isidentifier() and all(text in map(ast.unparse, self._around_of(n)) for n in reads):
            return name
        return self._name(f".{name}")

    def _around_of(self, node: ast.AST) -> list[ast.AST]:
        return [at for at in ancestors(node, self.ctx.source.parents) if isinstance(at, ast.Call | ast.Subscript)]

    # --- one variable ---------------------------------------------------------------------------------------------

    def _add(self, node: ast.expr, found: dict[str, Input]) -> None:
        fact = self.ctx.fact(node)
        if isinstance(fact, Qual | Class):
            return
        if isinstance(fact, Object) and fact.kind in PLACES:
            if self._is_handed_on(node, fact):
                text = ast.unparse(node)
                found.setdefault(text, Input(self._name(text), text, "static")).places.append(node)
            return
        whole = self._module_text(node, found)
        if whole is not None:
            found[whole].places.append(node)
            return
        variable = self.flow.variable(node)
        assert variable is not None
        place = self._chain(node, fact)
        if self._stays_global(variable, fact) and not self._is_set(node, place):
            return
        text = ast.unparse(place)
        if text not in found:
            found[text] = Input(self._name(text), text, self._kind(place, fact))
        found[text].places.append(place)

    def _is_handed_on(self, node: ast.expr, fact: Object) -> bool:
        """Whether a device of a function around is an argument of the user's own function, whose parameter stays."""
        variable, call = self.flow.variable(node) or "", self.ctx.source.parents.get(node)
        if isinstance(call, ast.keyword):
            call = self.ctx.source.parents.get(call)
        local = fact.kind != "generator" and ("." in variable or variable in self.local)
        return local and isinstance(call, ast.Call) and isinstance(self.ctx.fact(call.func), Function)

    def _module_text(self, node: ast.expr, found: dict[str, Input]) -> str | None:
        """The module among the inputs that a node names."""
        text = ast.unparse(node)
        one = found.get(text)
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
        found: set[str] = set()
        for node in self.ctx.source.nodes:
            match node:
                case ast.Call(func=ast.Attribute(attr=attr, value=ast.Name(id=name))) if attr in GROWING:
                    if takes_arrays(self.ctx.inference, node) and self._runs_again(node):
                        found.add(name)
        return found

    def _chain(self, node: ast.expr, fact: Fact) -> ast.expr:
        """``args.alpha`` as a whole: the object it is read from can't be passed to a compiled function."""
        place = node
        while True:
            known = self.ctx.fact(place)
            if is_module(known) or isinstance(known, Tensor | ListOf | Tuple | Scalar):
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
        if not self.compiled:
            return "module" if is_module(known) and not is_loss(known) else "array"
        if is_module(known):
            return "function" if is_loss(known) or known == AnyModule() and names_loss(place) else "module"
        if isinstance(known, Object):
            raise Refused(f"the loss is computed with {ast.unparse(place)}, {_called(known)}")
        if isinstance(known, Function):
            raise Refused(f"the loss is computed with {ast.unparse(place)}, a function that is defined inside another")
        if isinstance(known, Instance):
            raise Refused(
                f"the loss is computed with {ast.unparse(place)}, whose object can't be passed to a compiled function"
            )
        return "array"

    def _value_kind(self, one: Input) -> Kind:
        """Whether a value is traced, or known when the step is traced."""
        facts = [self.ctx.fact(p) for p in one.places]
        if is_called(one.places, self.ctx.inference, names_loss(one.places[0])):
            return "function"
        one.texts = given_as_tuple(facts)
        if not one.texts and any(isinstance(f, Tensor | ListOf | Tuple) or is_module(f) for f in facts):
            return "array"
        if not one.texts and has_settings(one.places, self.ctx.inference):
            raise Refused(f"a function is given {one.text}, an object that can't be passed to a compiled function")
        if one.texts or any(
            isinstance(f, Scalar | Object) and f.kind in ("str", "bool", "device", "dtype") for f in facts
        ):
            return "static"
        if any(isinstance(f, Scalar) or f == UNKNOWN or isinstance(f, UnknownParameter) for f in facts):
            return "static" if must_be_static(one.places, self.ctx.inference) else "array"
        return "array"


def names_loss(node: ast.expr) -> bool:
    """Whether a name says that it is a loss, of which ``loss_fn: nn.Module`` says only that it may be called."""
    name = ast.unparse(node).rpartition(".")[2].lower()
    return any(part in name for part in ("loss", "crit"))


def _position(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _held(part: ast.Subscript) -> ast.Name | None:
    """The array that a part is cut out of: `x` of ``x[order]`` and of ``x.long()[order]``."""
    match part.value:
        case ast.Name() as name:
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name() as name), args=[], keywords=[]):
            return name
    return None


def _whole(fact: Fact) -> bool:
    """Whether a value becomes an array before it is passed: an array of numpy, or a list of numbers."""
    return _is_numpy(fact) or isinstance(fact, ListOf) and isinstance(fact.item, Scalar) and fact.item.kind != "str"


def _called(known: Object) -> str:
    """An object in a reason."""
    return "an array of numpy" if _is_numpy(known) else f"a{'n' * (known.kind[0] in 'aeiou')} {known.kind}"


def _is_numpy(fact: Fact) -> bool:
    """Whether a value is known to be an array of numpy, or of a library like it."""
    return isinstance(fact, Object) and fact.kind == "array"


def _is_load(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Load)
