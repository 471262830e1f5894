"""What a module's constructor puts into each attribute: layers, modules of the file, parameters, buffers, settings."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.binding import bind
from t2j_lsp.translate.rule.definitions import ClassInfo, Instance, is_module, is_module_class
from t2j_lsp.translate.rule.facts import Layer
from t2j_lsp.translate.rule.functional import FUNCTIONAL, IGNORED, FunctionalLayer
from t2j_lsp.translate.rule.library import Trait, names_with

from .unpacking import unpacked

PARAMETERS = names_with(Trait.PARAMETER)


class Unconvertible(Exception):
    """A class can't become functions: where, and why."""

    def __init__(self, node: ast.AST, reason: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason


@dataclass(frozen=True)
class LayerChild:
    """A layer of torch, with the arguments of its constructor by name."""

    node: ast.Call
    layer: FunctionalLayer
    arguments: dict[str, ast.expr] = field(hash=False, compare=False, default_factory=dict)
    rest: tuple[ast.keyword, ...] = ()
    """Keywords that its function takes as they are."""


@dataclass(frozen=True)
class OwnChild:
    """A module of a class of the file."""

    node: ast.Call
    info: ClassInfo


@dataclass(frozen=True)
class SequentialChild:
    """Layers that are applied one after the other, by their names in the state dict."""

    node: ast.Call
    items: tuple[tuple[str, Child], ...]


@dataclass(frozen=True)
class ListChild:
    """A ModuleList: ``items`` are its elements as they are written, ``comprehension`` where one makes them all."""

    node: ast.Call
    items: tuple[Child, ...]
    comprehension: ast.ListComp | ast.GeneratorExp | None = None


@dataclass(frozen=True)
class Choice:
    """One of two, by a condition of the constructor; None where the attribute is None or missing then."""

    test: ast.expr
    then: Child | None
    other: Child | None


@dataclass(frozen=True)
class OwnParameter:
    """An ``nn.Parameter`` of the class itself."""

    value: ast.expr


@dataclass(frozen=True)
class OwnBuffer:
    """A buffer that is in the state dict."""

    value: ast.expr


@dataclass(frozen=True)
class Setting:
    """A value that is no part of the state: a size, a rate, a function; or a buffer that is not saved."""

    value: ast.expr


Child = LayerChild | OwnChild | SequentialChild | ListChild | Choice
Attribute = Child | OwnParameter | OwnBuffer | Setting


@dataclass(frozen=True)
class _Assigned:
    statement: ast.stmt
    value: ast.expr
    attribute: Attribute | None
    branches: tuple[tuple[ast.If, bool], ...]


class Constructor:
    """The constructor of one class, read: its attributes, its parameters and local names."""

    def __init__(self, inference: Inference, info: ClassInfo) -> None:
        self.inference, self.source, self.info = inference, inference.source, info
        init = info.methods.get("__init__")
        self.node = init.node if init is not None else None
        self.own = _first_name(self.node) if self.node is not None else "self"
        self.parameters: dict[str, ast.arg] = {}
        self.defaults: dict[str, ast.expr] = {}
        self.statements: dict[ast.stmt, tuple[str, Attribute]] = {}
        """What each statement that gives an attribute makes."""
        self.appends: dict[ast.stmt, tuple[str, Child]] = {}
        """Statements that append to a ModuleList."""
        self.super_init: ast.stmt | None = None
        self.attributes: dict[str, Attribute] = {}
        if self.node is not None:
            self._read(self.node)

    # --- reading --------------------------------------------------------------------------------------------------

    def _read(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = node.args
        if arguments.vararg or arguments.kwarg:
            raise Unconvertible(node, "its constructor takes any arguments: what the functions take is not known")
        self.parameters = {a.arg: a for a in symbols.named_parameters(node)[1:]}
        self.defaults = {a.arg: default for a, default in symbols.defaults(arguments)}
        assigned: dict[str, list[_Assigned]] = {}
        for statement in self._statements(node):
            self._statement(statement, assigned)
        for name, places in assigned.items():
            self.attributes[name] = self._one(name, places)
        for statement, (name, child) in self.appends.items():
            held = self.attributes.get(name)
            if not isinstance(held, ListChild) or held.comprehension is not None:
                raise Unconvertible(statement, f"self.{name} is no list of layers that is built in sight")
            self.attributes[name] = ListChild(held.node, (*held.items, child))

    def _statements(self, node: ast.AST) -> Iterator[ast.stmt]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                raise Unconvertible(child, "its constructor defines a function or a class")
            if isinstance(child, ast.stmt):
                yield child
                yield from self._statements(child)

    def _statement(self, statement: ast.stmt, assigned: dict[str, list[_Assigned]]) -> None:
        match statement:
            case ast.Assign(targets=[ast.Attribute() as target], value=value) if self.is_own(target):
                self._assigned(statement, target.attr, value, assigned)
            case ast.AnnAssign(target=ast.Attribute() as target, value=ast.expr() as value) if self.is_own(target):
                self._assigned(statement, target.attr, value, assigned)
            case ast.Expr(value=ast.Call(func=ast.Attribute() as function) as call):
                self._called(statement, call, function, assigned)
            case ast.Assign() if places := unpacked(statement, self.own):
                for target, value in places:
                    if self.attribute(value) is not None:
                        raise Unconvertible(statement, f"self.{target.attr} is a module, made beside other things")
                    self._assigned(statement, target.attr, value, assigned)
            case _:
                targets = [n for n in symbols.walk(statement) if isinstance(n, ast.Attribute) and self.is_own(n)]
                stores = [n for n in targets if not isinstance(n.ctx, ast.Load)]
                if stores and not hasattr(statement, "body"):
                    raise Unconvertible(statement, f"self.{stores[0].attr} is assigned in a way that is not read")

    def _called(
        self, statement: ast.stmt, call: ast.Call, function: ast.Attribute, assigned: dict[str, list[_Assigned]]
    ) -> None:
        """A call for its effect: of the base's constructor, or one that registers something."""
        if ast.unparse(function).startswith("super(") and function.attr == "__init__":
            self.super_init = statement
            return
        if isinstance(function.value, ast.Name) and function.value.id == self.own:
            arguments = [*call.args, *(k.value for k in call.keywords)]
            name = arguments[0].value if arguments and isinstance(arguments[0], ast.Constant) else None
            if function.attr == "register_buffer" and isinstance(name, str) and len(arguments) >= 2:
                saved = len(arguments) == 2 or getattr(arguments[2], "value", None) is True
                kind = OwnBuffer(arguments[1]) if saved else Setting(arguments[1])
                if isinstance(arguments[1], ast.Constant) and arguments[1].value is None:
                    raise Unconvertible(statement, f"the buffer {name} is None at first")
                assigned.setdefault(name, []).append(
                    _Assigned(statement, arguments[1], kind, self._branches(statement))
                )
                self.statements[statement] = (name, kind)
                return
            raise Unconvertible(statement, f"its constructor calls self.{function.attr}, which is not followed")
        owner = function.value
        if (
            isinstance(owner, ast.Attribute)
            and self.is_own(owner)
            and function.attr == "append"
            and len(call.args) == 1
        ):
            child = self.child(call.args[0])
            if child is not None:
                self.appends[statement] = (owner.attr, child)
                return
        if any(self.is_own(n) for n in symbols.walk(call) if isinstance(n, ast.Attribute)):
            raise Unconvertible(statement, f"{ast.unparse(function)} changes what the constructor made")

    def _assigned(self, statement: ast.stmt, name: str, value: ast.expr, assigned: dict[str, list[_Assigned]]) -> None:
        attribute = self.attribute(value)
        assigned.setdefault(name, []).append(_Assigned(statement, value, attribute, self._branches(statement)))
        if attribute is not None:
            self.statements[statement] = (name, attribute)

    def _branches(self, statement: ast.stmt) -> tuple[tuple[ast.If, bool], ...]:
        """The branches that a statement of the constructor stands in, innermost first."""
        branches: list[tuple[ast.If, bool]] = []
        at: ast.AST = statement
        while (around := self.source.parents.get(at)) is not None and around is not self.node:
            if not isinstance(around, ast.If):
                raise Unconvertible(statement, "what it assigns depends on more than a condition")
            branches.append((around, at in around.body))
            at = around
        return tuple(branches)

    def _one(self, name: str, places: Sequence[_Assigned]) -> Attribute:
        """What an attribute is, of all places that assign it."""
        first, last = places[0], places[-1]
        if len(places) == 1 and not first.branches:
            return first.attribute if first.attribute is not None else Setting(first.value)
        if len(places) > 2 or len(last.branches) != 1 or len(first.branches) > 1:
            raise Unconvertible(last.statement, f"self.{name} is assigned in more ways than two")
        (where, positive) = last.branches[0]
        other: _Assigned | None = None
        if len(places) == 2:
            other = first
            if first.branches and first.branches[0] != (where, not positive):
                raise Unconvertible(last.statement, f"self.{name} is assigned under two conditions")
        children = [self._alternative(name, one) for one in (last, other)]
        if all(child is None for child in children):
            raise Unconvertible(last.statement, f"self.{name} is one of two settings")
        return Choice(where.test, *(children if positive else children[::-1]))

    def _alternative(self, name: str, place: _Assigned | None) -> Child | None:
        if place is None or isinstance(place.value, ast.Constant) and place.value.value is None:
            return None
        if isinstance(place.attribute, LayerChild | OwnChild | SequentialChild):
            return place.attribute
        raise Unconvertible(place.statement, f"self.{name} is assigned under a condition")

    # --- values ---------------------------------------------------------------------------------------------------

    def is_own(self, node: ast.Attribute) -> bool:
        """Whether this is an attribute of the module itself."""
        return isinstance(node.value, ast.Name) and node.value.id == self.own

    def attribute(self, value: ast.expr) -> Attribute | None:
        """What a value makes of an attribute; None for a setting."""
        if isinstance(value, ast.Call):
            name = getattr(self.inference.fact(value.func), "name", "")
            if name in PARAMETERS:
                if not name.endswith(".Parameter") or len(value.args) != 1 or value.keywords:
                    raise Unconvertible(value, "only a parameter that gets gradients has a place of its own")
                return OwnParameter(value.args[0])
        return self.child(value)

    def child(self, value: ast.expr) -> Child | None:
        """The module that a value makes, if it makes one. Raises Unconvertible for one that has no function."""
        fact = self.inference.fact(value)
        if isinstance(value, ast.IfExp) and (is_module(fact) or is_module(self.inference.fact(value.body))):
            return Choice(value.test, self._present(value.body), self._present(value.orelse))
        if isinstance(value, ast.Call) and isinstance(fact, Instance) and is_module(fact):
            if fact.cls.info.external:
                raise Unconvertible(value, f"{fact.cls.name} is a module of another file")
            return OwnChild(value, fact.cls.info)
        if isinstance(value, ast.Call) and isinstance(fact, Layer):
            return self._layer(value, fact.name)
        if is_module(fact) or is_module_class(fact):
            raise Unconvertible(value, "it is handed a module, or the class of one, whose functions are not known here")
        return None

    def _present(self, value: ast.expr) -> Child | None:
        if isinstance(value, ast.Constant) and value.value is None:
            return None
        child = self.child(value)
        if child is None:
            raise Unconvertible(value, "it is a module or something else, by a condition")
        return child

    def _layer(self, call: ast.Call, name: str) -> Child:
        if name == "torch.nn.Sequential":
            return SequentialChild(call, tuple(self._items(call)))
        if name == "torch.nn.ModuleList":
            return self._list(call)
        layer = FUNCTIONAL.get(name)
        if layer is None:
            raise Unconvertible(call, f"{name.removeprefix('torch.')} has no function of its parameters yet")
        signature = layer.signature
        if not layer.apply:
            return LayerChild(call, layer, {})
        bound = bind(signature, call, None)
        if bound is None:
            raise Unconvertible(call, f"the arguments of {name.removeprefix('torch.')} are not written out")
        arguments = {parameter: nodes[0] for parameter, nodes in bound.items() if parameter != layer.rest}
        rest = [keyword for keyword in call.keywords if layer.rest and keyword.arg not in signature.by_name]
        for parameter, node in list(arguments.items()):
            written = ast.unparse(node)
            if parameter in layer.fixed:
                if layer.fixed[parameter] and written not in layer.fixed[parameter]:
                    raise Unconvertible(
                        node, f"{name.removeprefix('torch.')} with {parameter}={written} has no function"
                    )
                del arguments[parameter]
            elif written in layer.never.get(parameter, ()):
                raise Unconvertible(node, f"{name.removeprefix('torch.')} with {parameter}={written} has no function")
            elif parameter in IGNORED:
                del arguments[parameter]
            elif parameter not in (*layer.takes, *layer.options):
                if signature.by_name[parameter].default != written:
                    raise Unconvertible(node, f"{name.removeprefix('torch.')} with {parameter} has no function")
                del arguments[parameter]
        return LayerChild(call, layer, arguments, tuple(rest))

    def _items(self, call: ast.Call) -> Iterator[tuple[str, Child]]:
        """The children of a Sequential by their names."""
        fact = self.inference.fact(call.args[0]) if len(call.args) == 1 else None
        if fact is not None and not is_module(fact):
            inner = call.args[0]
            pairs = inner.args[0] if isinstance(inner, ast.Call) and len(inner.args) == 1 else None
            for pair in pairs.elts if isinstance(pairs, ast.List | ast.Tuple) else [None]:
                match pair:
                    case ast.Tuple(elts=[ast.Constant(value=str(name)), value]):
                        yield name, self._item(value)
                    case _:
                        raise Unconvertible(call, "the layers of a Sequential are not written out")
            return
        if call.keywords or any(isinstance(a, ast.Starred) for a in call.args):
            raise Unconvertible(call, "the layers of a Sequential are not written out")
        for index, value in enumerate(call.args):
            yield str(index), self._item(value)

    def _item(self, value: ast.expr, may_be_list: bool = False) -> Child:
        child = self.child(value)
        if child is None or isinstance(child, ListChild) and not may_be_list:
            raise Unconvertible(value, "an element of a list of layers is not known to be a layer")
        return child

    def _list(self, call: ast.Call) -> ListChild:
        if not call.args and not call.keywords:
            return ListChild(call, ())
        value = call.args[0] if len(call.args) == 1 and not call.keywords else None
        if isinstance(value, ast.List | ast.Tuple):
            if any(isinstance(e, ast.Starred) for e in value.elts):
                raise Unconvertible(call, "the elements of a ModuleList are not written out")
            return ListChild(call, tuple(self._item(element, True) for element in value.elts))
        if isinstance(value, ast.ListComp | ast.GeneratorExp):
            return ListChild(call, (self._item(value.elt, True),), value)
        raise Unconvertible(call, "the elements of a ModuleList are not written out")


def _first_name(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    arguments = symbols.positional_parameters(node)
    return arguments[0].arg if arguments else "self"


def is_child(attribute: Attribute) -> TypeGuard[Child]:
    """Whether an attribute is a module."""
    return not isinstance(attribute, OwnParameter | OwnBuffer | Setting)


def children(attribute: Attribute) -> Iterator[Child]:
    """A child and those inside it."""
    if not is_child(attribute):
        return
    yield attribute
    match attribute:
        case SequentialChild():
            inside: Sequence[Child | None] = [item for _, item in attribute.items]
        case ListChild():
            inside = attribute.items
        case Choice():
            inside = (attribute.then, attribute.other)
        case _:
            inside = ()
    for child in inside:
        if child is not None:
            yield from children(child)
