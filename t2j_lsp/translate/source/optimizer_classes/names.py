"""The variables of a step: which hold the gradient, the state of the parameter, what is in it, and options."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeGuard

from t2j_lsp import symbols

from .unfit import need
from .walks import Walk

IN_PLACE = "_"
"""The end of the names of methods that write into their tensor."""
_WITHOUT_CHANGE = ("detach", "contiguous")


@dataclass
class StepNames:
    """What the variables of a step stand for."""

    group: str
    parameter: str
    gradient: str = "grad"
    states: set[str] = field(default_factory=set)
    entries: dict[str, str] = field(default_factory=dict)
    """What the state of a parameter has, and the variables that hold it."""
    written: set[str] = field(default_factory=set)
    """What goes into the state of a parameter and is read nowhere."""
    renames: dict[str, str] = field(default_factory=dict)
    """Variables that are others under a second name."""
    stored: Counter[str] = field(default_factory=Counter)
    """How often each variable is given a value."""


def same(node: ast.expr) -> ast.expr:
    """What a tensor is the same as: ``p`` for ``p.data``, ``p.grad`` for ``p.grad.data`` and ``p.grad.detach()``."""
    match node:
        case ast.Attribute(value=value, attr="data"):
            return same(value)
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=[], keywords=[]) if name in _WITHOUT_CHANGE:
            return same(value)
    return node


def is_gradient(node: ast.expr, parameter: str) -> bool:
    """Whether it is ``p.grad``, also ``p.grad.data``."""
    match same(node):
        case ast.Attribute(value=value, attr="grad"):
            return isinstance(owner := same(value), ast.Name) and owner.id == parameter
    return False


def is_state(node: ast.expr, parameter: str) -> bool:
    """Whether it is ``self.state[p]``."""
    match node:
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id="self"), attr="state"), slice=ast.Name(id=name)):
            return name == parameter
    return False


def pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The single values that an assignment gives to its targets."""
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            if len(target.elts) == len(node.value.elts):
                yield from zip(target.elts, node.value.elts, strict=True)
                continue
        yield target, node.value


def writes_into(node: ast.expr) -> ast.expr | None:
    """The tensor that a chain of calls in place writes into; None for other expressions."""
    inside: ast.expr | None = None
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        node = node.func.value
        if name.endswith(IN_PLACE) and not name.startswith(IN_PLACE):
            inside = node
    return None if isinstance(inside, ast.Call) else inside


class StepNamesReader:
    """Finds what the variables of a step stand for."""

    def __init__(self, walk: Walk, options: dict[str, str], file: Sequence[ast.AST]) -> None:
        self.file = file
        self.walk = walk
        self.options = options
        self.statements = [*walk.before, *walk.body, *walk.after]
        self.names = StepNames(walk.group, walk.parameter)
        self.nodes = nodes = [n for s in self.statements for n in symbols.walk(s)]
        self.places = _places(self.statements)
        self.names.stored.update(n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
        self.assigned = [(n, *pair) for n in nodes if isinstance(n, ast.Assign) for pair in pairs(n)]
        self.aliases: dict[str, list[str]] = {}
        """The variables that hold each entry of the state."""

    @cached_property
    def numbers(self) -> set[str]:
        """The entries of the state that are numbers."""
        return {
            key
            for _, target, value in self.assigned
            if (key := self.key(target)) is not None
            and isinstance(value, ast.Constant)
            and type(value.value) in (int, float)
        }

    def read(self) -> StepNames:
        """What the variables stand for. Raises Unfit."""
        self._states()
        self._gradient()
        for statement, target, value in self.assigned:
            if isinstance(target, ast.Name):
                self._alias(statement, target.id, value)
        keys = (self.key(node) for node in self.nodes if isinstance(node, ast.Subscript))
        for key in dict.fromkeys(key for key in keys if key is not None):
            if self._is_read(key):
                self._entry(key)
            else:
                self.names.written.add(key)
        return self.names

    def _states(self) -> None:
        given = [
            (n, t.id) for n, t, v in self.assigned if isinstance(t, ast.Name) and is_state(v, self.names.parameter)
        ]
        for node, name in given:
            need(self.names.stored[name] == len([n for _, n in given if n == name]), f"what {name} is", node)
            self.names.states.add(name)

    def _gradient(self) -> None:
        """The variable of the gradient: the first that has it."""
        for _, target, value in self.assigned:
            if isinstance(target, ast.Name) and is_gradient(value, self.names.parameter):
                self.names.gradient = target.id
                return

    def key(self, node: ast.expr) -> str | None:
        """The name of an entry of the parameter's state; None for other expressions."""
        match node:
            case ast.Subscript(value=value, slice=ast.Constant(value=str(key))):
                of_state = isinstance(value, ast.Name) and value.id in self.names.states
                return key if of_state or is_state(value, self.names.parameter) else None
        return None

    def option(self, node: ast.expr) -> str | None:
        """The variable of an option of the group; None for other expressions."""
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))) if name == self.names.group:
                return self.options.get(key)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="get"), args=[ast.Constant(value=str(key)), *_]
            ) if name == self.names.group:
                return self.options.get(key)
            case ast.Attribute(value=ast.Name(id="self"), attr="defaults"):
                return None
        return None

    def _alias(self, statement: ast.Assign, name: str, value: ast.expr) -> None:
        """A second name of an option or of the parameter; those of entries of the state are kept for later."""
        names = self.names
        if (option := self.option(value)) is not None and names.stored[name] == 1:
            names.renames[name] = option
        elif self.is_parameter(value) and names.stored[name] == 1:
            names.renames[name] = names.parameter
        key = self.key(same(value))
        if key is None:
            twins = [self.key(t) for t in statement.targets] if len(statement.targets) > 1 else []
            key = next((k for k in twins if k is not None), None)
        if key is not None and name not in self.aliases.setdefault(key, []):
            self.aliases[key].append(name)

    def is_parameter(self, node: ast.expr) -> bool:
        """Whether it is the parameter, ``p.data`` or in another type: ``p.data.float()``, which is put back."""
        match node := same(node):
            case ast.Call(func=ast.Attribute(value=value, attr="float" | "type_as" | "to")):
                return self.is_parameter(value)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_parameter(body) and self.is_parameter(orelse)
        return isinstance(node, ast.Name) and node.id == self.names.parameter

    # --- entries of the state -------------------------------------------------------------------------------------

    def _is_read(self, key: str) -> bool:
        """Whether anything reads an entry, here or by its name in the file."""
        stores = [n for n in self.nodes if isinstance(n, ast.Subscript) and self.key(n) == key]
        if any(isinstance(n.ctx, ast.Load) for n in stores) or key in self.aliases:
            return True
        if any(isinstance(n, ast.AugAssign) and self.key(n.target) == key for n in self.nodes):
            return True
        return sum(isinstance(n, ast.Constant) and n.value == key for n in self.file) > len(stores)

    def _entry(self, key: str) -> None:
        """The variable of an entry: the one that the step calls it by, if it stays the same value throughout."""
        aliases = self.aliases.get(key, [])
        if not aliases:
            self.names.entries[key] = key
            return
        problem = next((p for name in aliases if (p := self._parts(name, key)) is not None), None)
        if problem is None:
            first = key if key in aliases else aliases[0]
            self.names.entries[key] = first
            self.names.renames.update({name: first for name in aliases if name != first})
            return
        need(not self.writes(key), f"{aliases[0]} is the state's {key!r} and then another value", problem)
        self.names.entries[key] = key if key not in self.names.stored else f"state_{key}"

    def _parts(self, name: str, key: str) -> ast.AST | None:
        """Where a variable and the entry that it was are no longer the same; None if they always are."""
        others, back, read = list[int](), list[int](), list[int]()
        for statement, target, value in self.assigned:
            if (into := writes_into(value)) is not None and ast.unparse(same(into)) == ast.unparse(target):
                continue  # m = m.mul_(beta)
            of_key = self.key(same(value)) == key
            if isinstance(target, ast.Name) and target.id == name:
                twin = any(self.key(t) == key for t in statement.targets)
                (read if of_key or twin else others).append(self.places[statement])
            elif self.key(target) == key and isinstance(value, ast.Name) and value.id == name:
                back.append(self.places[statement])
        others += [self.places[n] for n in self.nodes if isinstance(n, ast.AugAssign) and self._counts(n, name, key)]
        if others and not any(place > max(others) for place in back):
            return next(n for n in self.nodes if self.places[n] == max(others) and isinstance(n, ast.stmt))
        stores = [n for n in self.nodes if self._stores(n, name, key)]
        for node in self.nodes:
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                for store in stores:
                    first, last = self.places[store], self.places[node]
                    if first < last and not any(first <= place < last for place in read):
                        return node
        return None

    def _counts(self, node: ast.AugAssign, name: str, key: str) -> bool:
        """``step += 1`` of a variable that holds a number of the state, which keeps its own."""
        return isinstance(node.target, ast.Name) and node.target.id == name and key in self.numbers

    def _stores(self, node: ast.AST, name: str, key: str) -> TypeGuard[ast.stmt]:
        """Whether a statement gives an entry another value, and not that of the variable."""
        match node:
            case ast.AugAssign(target=target):
                return self.key(target) == key and key in self.numbers
            case ast.Assign():
                values = [v for t, v in pairs(node) if self.key(t) == key]
                twin = any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
                return any(not (isinstance(v, ast.Name) and v.id == name) for v in values) and not twin
        return False

    def writes(self, key: str) -> bool:
        """Whether a step writes into an entry."""
        aliases = self.aliases.get(key, [])
        for node in self.nodes:
            if isinstance(node, ast.AugAssign) and key not in self.numbers:
                written: ast.expr | None = node.target
            elif isinstance(node, ast.Call):
                written = writes_into(node)
            elif isinstance(node, ast.keyword) and node.arg == "out":
                written = node.value
            else:
                continue
            if written is not None and (self.key(written) == key or ast.unparse(same(written)) in aliases):
                return True
        return False


def _places(body: Sequence[ast.stmt]) -> dict[ast.AST, int]:
    """The place of each node among the statements, in the order in which they stand."""
    out: dict[ast.AST, int] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            count[0] += 1
        out[node] = count[0]
        for inner in ast.iter_child_nodes(node):
            visit(inner)

    count = [0]
    for statement in body:
        visit(statement)
    return out
