"""What a training script says of its variables by what it does with them: which is a model, an optimizer, a batch.

Facts flow forward from constructors, so the parameters of ``def train(model, loader, optimizer)`` are unknown at
first. Here they are taken from the calls in the file, and where it has none from use: what is stepped and zeroed is an
optimizer, what is called on a batch and switched by ``train()`` is a module. The facts go back into a second pass.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from t2j_lsp import symbols
from t2j_lsp.symbols import named_parameters, nearest
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function, defaults
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.forward_pass import UnknownParameter
from t2j_lsp.translate.rule.definitions import ClassInfo, Function, FunctionInfo, holds_optimizers, is_module
from t2j_lsp.translate.rule.facts import (
    STR,
    TENSOR,
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
    is_tensor,
)
from t2j_lsp.translate.rule.join import element, join
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.optimizer_values import transformation_of
from t2j_lsp.translate.source.assignments import assigned
from t2j_lsp.translate.training.program.passed_optimizers import passed_optimizers

from .batch_loops import (
    asks_for_tensors,
    batch_targets,
    goes_over_dict,
    has_training,
    hides_items,
    is_loader,
    is_move,
    is_named_loader,
    is_object,
    loader_of,
    moves_or_trains,
    names_in,
    zipped,
)
from .batch_uses import BatchUses
from .sample_parts import SampleParts

MODULE_METHODS = frozenset(
    {"train", "eval", "parameters", "named_parameters", "state_dict", "zero_grad", "load_state_dict"}
)

ROUNDS = 4


def with_training_facts(inference: Inference) -> Inference:
    """The inference repeated with what the file's training code tells of its parameters and batches."""
    given = inference.assumed
    assumed: dict[ast.AST, Fact] = {}
    for _ in range(ROUNDS):
        facts = _Roles(inference).facts()
        if all(assumed.get(node) == fact for node, fact in facts.items()):
            break
        assumed.update(facts)
        inference = inference.knowing({**assumed, **given})
    return inference


class _Roles:
    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self._parents = inference.source.parents
        self.uses = BatchUses(inference)
        self.samples = SampleParts(inference)
        self.roles: dict[ast.AST, Fact] = {}

    def facts(self) -> dict[ast.AST, Fact]:
        self._from_calls()
        for info in self.inference.functions.values():
            if not info.external:
                self._from_use(info)
        for loop in self.inference.source.nodes:
            if isinstance(loop, ast.For):
                self._batch(loop)
            elif isinstance(loop, ast.Assign):
                self._next_batch(loop)
            elif isinstance(loop, ast.Call):
                self._next_in_expression(loop)
        self._losses()
        return self.roles

    def fact(self, node: ast.AST) -> Fact:
        fact = self.inference.facts.get(node, UNKNOWN)
        return UNKNOWN if isinstance(fact, UnknownParameter) else fact

    # --- parameters -----------------------------------------------------------------------------------------------

    def _from_calls(self) -> None:
        """Parameters of the file's functions from the arguments that the file passes."""
        seen: dict[ast.arg, Fact] = {}
        optimizers: dict[ast.arg, set[Fact]] = {}
        for node in self.inference.source.nodes:
            if not isinstance(node, ast.Call):
                continue
            info = called_function(self.fact(node.func))
            if info is None or info.external:
                continue
            for parameter, value in bound_arguments(node, info):
                if parameter.annotation is not None:
                    continue
                fact = self.fact(value)
                optimizers.setdefault(parameter, set()).add(fact)
                if isinstance(fact, Qual) and parameter in dict(defaults(info)):
                    continue  # calls without it have another class
                if isinstance(fact, Scalar):
                    fact = Scalar(fact.kind)
                seen[parameter] = join(seen[parameter], fact) if parameter in seen else fact
        self.roles.update({parameter: fact for parameter, fact in seen.items() if _useful(fact)})
        self.roles.update(passed_optimizers(self.inference, optimizers))

    def _from_use(self, info: FunctionInfo) -> None:
        for parameter in named_parameters(info.node):
            if parameter in self.roles or parameter.annotation is not None:
                continue
            role = self._role(parameter.arg, self._places(info, parameter.arg))
            if role is not None:
                self.roles[parameter] = role

    def _places(self, info: FunctionInfo, name: str) -> list[ast.expr]:
        """The expressions that read a parameter, also through ``self.x = x`` in the class of a constructor.

        So they may in classes that derive from it: ``class TrainEpoch(Epoch)`` calls the model that `Epoch` keeps.
        """
        places: list[ast.expr] = [n for n in symbols.walk(info.node) if isinstance(n, ast.Name) and n.id == name]
        if info.owner is None or info.name != "__init__":
            return places
        own = [c for c in self.inference.classes.values() if info.owner in c.ancestry() and not c.external]
        for node in symbols.walk(info.node):
            for target, value in assigned(node):
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                    if isinstance(moved := _unmoved(value), ast.Name) and moved.id == name:
                        holders = (c for c in own if c is info.owner or not _has_its_own(c, target.attr))
                        places.extend(place for one in holders for place in _attributes(one, target.attr))
        return places

    def _role(self, name: str, places: list[ast.expr]) -> Fact | None:
        parents = self._parents
        methods: set[str] = set()
        called = data = False
        for place in places:
            parent = parents.get(place)
            if isinstance(parent, ast.Attribute):
                methods.add(parent.attr)
            if isinstance(parent, ast.Call) and place in parent.args and getattr(parent.func, "attr", "") == "step":
                methods.add("step")  # of a gradient scaler, which makes it
            call = parents.get(parent) if isinstance(parent, ast.Attribute) and parent.attr == "forward" else parent
            if isinstance(call, ast.Call) and call.func in (place, parent):
                called = True
                data = data or self._inner_call(call)
        if "step" in methods and ({"zero_grad", "param_groups"} & methods or "opt" in name.lower()):
            return Object("optimizer")
        if {"scale", "step", "update"} <= methods:
            return Object("scaler")
        if "step" in methods and "sched" in name.lower():
            return Object("scheduler")
        if called and (MODULE_METHODS & methods or (data and self._trains(places))):
            return AnyModule()
        return None

    def _inner_call(self, call: ast.Call) -> bool:
        """Whether a call takes no other call's value: a model is called on data, a loss on what a model returns."""
        if not call.args or any(isinstance(n, ast.Call) for a in call.args for n in symbols.walk(a) if not is_move(n)):
            return False
        return len(call.args) == 1 and not call.keywords

    def _trains(self, places: list[ast.expr]) -> bool:
        for place in places:
            function = nearest(ast.FunctionDef, place, self._parents)
            if function is not None and has_training(function):
                return True
        return False

    # --- batches and losses ---------------------------------------------------------------------------------------

    def _batch(self, loop: ast.For) -> None:
        for target, iterable in zipped(loop):
            loader = is_loader(self.fact(iterable))
            if loader or self.fact(iterable) == UNKNOWN and is_named_loader(iterable) and moves_or_trains(loop):
                self._take(loop, names_in(target), loader)
        iterable = loader_of(loop.iter)
        fact = self.fact(iterable)
        unknown = (fact == UNKNOWN or hides_items(fact)) and not goes_over_dict(loop, self.inference.facts)
        unknown = unknown and (moves_or_trains(loop) or self._may_be_loader(loop) and self.uses.computes_of_items(loop))
        if is_loader(fact) or unknown:
            self._take(loop, batch_targets(loop), is_loader(fact))

    def _may_be_loader(self, loop: ast.For) -> bool:
        """Whether what a loop goes over, of which nothing is known, may be a loader: by its name, or in code that uses
        modules, in a file that makes loaders. What modules themselves go over is given by those who call them."""
        if is_named_loader(loader_of(loop.iter)):
            return True
        around = nearest(ast.ClassDef, loop, self._parents)
        info = self.inference.classes.get(around) if around is not None else None
        return self.samples.has_loaders and not (info is not None and info.acts_as_module)

    def _take(self, loop: ast.For, targets: list[ast.Name], surely: bool) -> None:
        """The targets of a loop hold batches, where it is ``surely`` a loader that it walks."""
        if any(is_object(loop, target.id) for target in targets):
            return
        if len(targets) == 1 and not self._whole(loop, targets[0].id):
            self._assume(targets[0], self._structure(loop, targets[0].id))
            return
        for index, target in enumerate(targets):
            used = self.uses.is_tensor(loop, target.id)
            if surely or used:
                self._assume(target, self.samples.part(index) if len(targets) > 1 and not used else TENSOR)

    def _next_batch(self, node: ast.Assign) -> None:
        """``x, y = next(batches)``, and ``batch = next(batches)``, of an iterator over a loader."""
        match node:
            case ast.Assign(targets=[target], value=ast.Call(func=ast.Name(id="next"), args=[taken, *_])):
                fact = self.fact(taken)
            case _:
                return
        if not isinstance(fact, Object) or fact.kind != "batches":
            return
        if isinstance(target, ast.Tuple | ast.List):
            for index, one in enumerate(target.elts):
                if isinstance(one, ast.Name):
                    self._assume(one, self.samples.part(index))
        elif isinstance(target, ast.Name):
            scope = nearest(ast.FunctionDef, node, self._parents) or self.inference.source.tree
            whole = self._whole(scope, target.id)
            self._assume(target, TENSOR if whole else self._structure(scope, target.id))

    def _next_in_expression(self, node: ast.Call) -> None:
        """``next(batches).to(device)``, and ``next(batches)[0]`` of an iterator over a loader."""
        match node:
            case ast.Call(func=ast.Name(id="next"), args=[taken, *_]):
                fact = self.fact(taken)
            case _:
                return
        of_loader = isinstance(fact, Object) and fact.kind == "batches"
        match self._parents.get(node):
            case ast.Subscript(slice=ast.Constant(value=int()), value=value) if of_loader and value is node:
                self._assume(node, ListOf(TENSOR))
            case ast.Subscript(slice=ast.Constant(value=str()), value=value) if of_loader and value is node:
                self._assume(node, ListOf(TENSOR, STR))
            case ast.Attribute(value=value, attr=name) if value is node and name in names_with(Trait.TO_DEVICE):
                self._assume(node, TENSOR)

    def _assume(self, node: ast.AST, fact: Fact) -> None:
        if self.fact(node) == UNKNOWN or node in self.roles or isinstance(self.fact(node), Tensor | ListOf | MixedDict):
            self.roles[node] = fact

    def _whole(self, loop: ast.AST, name: str) -> bool:
        """Whether the loop's only variable is one tensor, and not a tuple or dict of them."""
        if any(_is_indexed(node, name) for node in symbols.walk(loop)):
            return False
        if any(_takes_apart(node, one) for scope, one in self.uses.places(loop, name) for node in symbols.walk(scope)):
            return False
        return self.uses.is_moved_or_called_on(loop, name)

    def _structure(self, loop: ast.AST, name: str) -> Fact:
        """What a batch is that isn't one tensor: a dict or a tuple of them, perhaps with texts beside."""
        places = list(self.uses.places(loop, name))
        is_dict = any(_is_of_dict(node, one) for scope, one in places for node in symbols.walk(scope))
        if not self.samples.may_hold_texts:
            if is_dict and self.samples.are_unknown:
                if (texts := self.samples.texts(_keys(places))) is not None:
                    return texts
                if asks_for_tensors(loop, self.inference.facts):
                    return MixedDict(())
            return ListOf(TENSOR, STR) if is_dict else ListOf(TENSOR)
        return self.samples.batch(is_dict)

    def _losses(self) -> None:
        """``loss.backward()`` is only there on a tensor with one element."""
        stored: dict[ast.AST, dict[str, list[ast.Name]]] = {}
        for node in self.inference.source.nodes:
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="backward"), args=[]):
                    scope: ast.AST = node
                    while not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
                        scope = self._parents[scope]
                    if scope not in stored:
                        stored[scope] = _stores(scope)
                    for inner in stored[scope].get(name, ()):
                        if self.fact(inner) == UNKNOWN or inner in self.roles:
                            self.roles[inner] = Tensor(0, "float")


def _takes_apart(node: ast.AST, name: str) -> bool:
    """Whether a variable is used as tuples and dicts are."""
    match node:
        case ast.Assign(targets=[ast.Tuple() | ast.List()], value=ast.Name(id=source)):
            return source == name
        case ast.Starred(value=ast.Name(id=source)):
            return source == name
    return _is_of_dict(node, name)


def _keys(places: Iterable[tuple[ast.AST, str]]) -> set[str]:
    """The names that are read of a dict."""
    keys: set[str] = set()
    for scope, name in places:
        for node in symbols.walk(scope):
            match node:
                case ast.Subscript(value=ast.Name(id=source), slice=ast.Constant(value=str() as key)) if source == name:
                    keys.add(key)
    return keys


def _is_indexed(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Subscript(value=ast.Name(id=source), slice=ast.Constant()):
            return source == name
    return False


def _is_of_dict(node: ast.AST, name: str) -> bool:
    """Whether a variable is used as dicts are."""
    match node:
        case ast.Subscript(value=ast.Name(id=source), slice=ast.Constant(value=str())):
            return source == name
        case ast.Attribute(value=ast.Name(id=source), attr="items" | "keys" | "values"):
            return source == name
        case ast.keyword(arg=None, value=ast.Name(id=source)):
            return source == name
    return False


def _stores(scope: ast.AST) -> dict[str, list[ast.Name]]:
    """Where names are bound inside a scope."""
    stores: dict[str, list[ast.Name]] = {}
    for node in symbols.walk(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stores.setdefault(node.id, []).append(node)
    return stores


def _unmoved(node: ast.expr) -> ast.expr:
    """What ``model.to(device)`` moves; other values themselves."""
    match node:
        case ast.Call(func=ast.Attribute(value=moved)) if is_move(node):
            return moved
    return node


def _attributes(owner: ClassInfo, name: str) -> Iterator[ast.expr]:
    for node in symbols.walk(owner.node):
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.value, ast.Name):
            if node.value.id == "self" and isinstance(node.ctx, ast.Load):
                yield node


def _has_its_own(owner: ClassInfo, name: str) -> bool:
    """Whether a class has a value of its own under a name of ``self``."""
    nodes = (n for n in symbols.walk(owner.node) if isinstance(n, ast.Attribute) and n.attr == name)
    return any(isinstance(n.ctx, ast.Store) for n in nodes)


def _useful(fact: Fact) -> bool:
    if isinstance(fact, Scalar):
        return fact.kind != "none"
    if isinstance(fact, Qual):
        return bool(transformation_of(fact))
    if isinstance(fact, ListOf | Tuple):
        return _useful(element(fact))
    held = is_module(fact) or is_tensor(fact) or holds_optimizers(fact)
    return held or isinstance(fact, Object | Function | MixedDict)
