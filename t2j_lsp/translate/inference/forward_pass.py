"""The forward pass: what it knows so far, which all its parts share, and expressions and statements by their kind.

Names, constants, displays and jumps are known here; other kinds have parts of their own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from t2j_lsp.translate.rule.definitions import Class, ClassInfo, FunctionInfo, Home, Instance, is_module
from t2j_lsp.translate.rule.facts import (
    NONE,
    NOTHING,
    STR,
    UNKNOWN,
    Fact,
    ListOf,
    Object,
    Qual,
    Scalar,
    Tuple,
)
from t2j_lsp.translate.rule.join import iterated, join_all
from t2j_lsp.translate.rule.names import ARRAY_LIBRARIES, canonical
from t2j_lsp.translate.rule.own_generators import own_generator
from t2j_lsp.translate.rule.record import Rule
from t2j_lsp.translate.source.given import NOTHING_GIVEN, Given

from .uses import CallerQuestions, ModuleUses

CONTAINERS = ("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict")


def contents(node: ast.Call) -> ast.expr | None:
    """What a ModuleList, a ModuleDict or a list or dict of parameters is filled with, by place or by name."""
    given = [*node.args, *(k.value for k in node.keywords if k.arg in ("modules", "values", "parameters"))]
    return given[0] if len(given) == 1 == len(node.args) + len(node.keywords) else None


@dataclass(frozen=True)
class UnknownParameter(Fact):
    """A function parameter of which nothing is known yet; use as a tensor is evidence.

    ``foreign``: methods that tensors don't have are called on it, so that ``x.clone()`` makes no tensor of it.
    """

    is_open = True
    name: str
    foreign: bool = False


def is_known(fact: Fact) -> bool:
    """Whether anything is known of a value."""
    return fact != UNKNOWN and not isinstance(fact, UnknownParameter)


Env = dict[str, Fact]
"""What names mean at a place: also dotted ones (``self.conv``), where a condition tells more of them."""


class Infer(Protocol):
    """What the parts of inference ask for the expressions inside those they answer for."""

    def expr(self, node: ast.expr | None, env: Env) -> Fact:
        """Infer one expression and remember its fact."""


class OnDemand(Home, Protocol):
    """A file of which only that is inferred which something asks for."""

    def begin(self, info: FunctionInfo) -> bool:
        """Infer what a body names, before it is inferred itself; whether it may be."""

    def end(self) -> None:
        """The body is inferred."""

    def begin_class(self, info: ClassInfo) -> None:
        """Infer what a class names at its own level."""

    def tells_of_attributes(self, info: FunctionInfo) -> bool:
        """Whether a method says what its class holds, or runs as its forward pass."""


@dataclass
class Body:
    """What one reading of a function's body brings to light."""

    observed: dict[str, Fact] = field(default_factory=dict)
    """What the use of its parameters tells of them."""
    weak: set[str] = field(default_factory=set)
    """Parameters that only the names of methods make tensors, names that other objects may have too."""
    returned: list[Fact] = field(default_factory=list)
    tuples: list[Tuple] = field(default_factory=list)
    """What is returned as a tuple, in some case."""
    yielded: list[Fact] = field(default_factory=list)


@dataclass
class State:
    """What is known of one file so far, and where in it the inference is. Every part of it reads and writes this."""

    assumed: Mapping[ast.AST, Fact]
    """Facts of parameters and of assigned names, where nothing else is known of them."""
    given: Given = NOTHING_GIVEN
    """What is known of a text that t2j wrote itself."""
    facts: dict[ast.AST, Fact] = field(default_factory=dict)
    env: Env = field(default_factory=dict)
    """What the module level binds."""
    classes: dict[ast.ClassDef, ClassInfo] = field(default_factory=dict)
    functions: dict[ast.AST, FunctionInfo] = field(default_factory=dict)
    imports_torch: bool = False
    named_arrays: frozenset[ast.Call] = frozenset()
    """Walks over a module's named parameters that make a dict of arrays."""
    chosen_names: Mapping[ast.Call, tuple[str, ...]] = field(default_factory=dict)
    """The names that ``getattr(nn, name)`` may be given."""
    uses: ModuleUses = field(default_factory=ModuleUses)
    callers: CallerQuestions = field(default_factory=CallerQuestions)
    function: FunctionInfo | None = None
    """The function that is being inferred."""
    class_info: ClassInfo | None = None
    """The class that is being inferred."""
    body: Body = field(default_factory=Body)
    home: OnDemand | None = None
    """Says how much of the file is inferred, if it isn't the one that is converted."""

    def current(self, fact: Fact) -> Fact:
        """A fact of an earlier inference of the file, as this one knows its classes."""
        if isinstance(fact, Instance) and fact.cls.info.node in self.classes:
            return Instance(self.classes[fact.cls.info.node].fact)
        if isinstance(fact, Class) and fact.info.node in self.classes:
            return self.classes[fact.info.node].fact
        return fact

    @property
    def asks_call_sites(self) -> bool:
        """Whether what is passed for parameters may tell more of the file."""
        callers = self.callers
        return callers.calls_unknown or callers.hands_modules or callers.hands_classes or callers.asks_callers

    @cached_property
    def array_libraries(self) -> frozenset[str]:
        """Packages that the file imports and that have arrays of their own."""
        return ARRAY_LIBRARIES & {fact.name.partition(".")[0] for fact in self.env.values() if isinstance(fact, Qual)}

    @property
    def other_arrays(self) -> bool:
        """Whether there are arrays beside tensors in the file, whose methods have the same names."""
        return bool(self.array_libraries)

    def in_module(self) -> bool:
        """Whether the code here is a method of a module."""
        return self.function is not None and self.function.owner is not None and self.function.owner.is_module

    def note_random(self, call: ast.Call, name: str, rule: Rule) -> None:
        """A torch function was called that may draw random numbers."""
        if rule.random and self.function is not None and own_generator(call, self.function) is None:
            if name.startswith("torch.nn.init."):
                self.function.builds = True
            else:
                self.function.draws = True

    def note_call(
        self, info: FunctionInfo | ClassInfo, arguments: Iterable[Fact] = (), gives_rngs: bool = False
    ) -> None:
        """A function or class of the file was called. ``gives_rngs``: whoever calls needs no others for it."""
        self.callers.hands_modules |= any(is_module(one) or isinstance(one, Instance) for one in arguments)
        if gives_rngs:
            return
        if isinstance(info, ClassInfo) and info.is_module:
            self.note_built()
        if self.function is not None:
            self.function.callees.add(info)

    def note_built(self) -> None:
        """A module was built."""
        if self.function is not None:
            self.function.builds = True


# --- expressions and statements by their kind -------------------------------------------------------------------------


ExpressionFacts = Callable[[Any, Env], Fact]
"""The fact of an expression of one kind."""
StatementFacts = Callable[[Any, Env], bool]
"""Infers a statement of one kind; whether control falls out of its end."""


class Expressions:
    """Facts of expressions. Other parts hand over their handlers where a kind is first met, and are made then."""

    def __init__(
        self,
        state: State,
        member: Callable[[str, str], Fact | None],
        attribute: Callable[[ast.Attribute, Fact], Fact],
        parts: Mapping[type[ast.expr], Callable[[], ExpressionFacts]],
    ) -> None:
        self.state = state
        self.member = member
        """What a module of the project has under a name."""
        self.attribute = attribute
        """An attribute of anything but a library."""
        self.parts = parts
        self.handlers: dict[type[ast.expr], ExpressionFacts] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Tuple: self._sequence,
            ast.List: self._sequence,
            ast.Set: self._set,
            ast.Dict: self._mapping,
            ast.Starred: self._starred,
            ast.JoinedStr: self._fstring,
        }

    def expr(self, node: ast.expr | None, env: Env) -> Fact:
        """Infer one expression and remember its fact."""
        if node is None:
            return NONE
        kind = type(node)
        handler = self.handlers.get(kind)
        if handler is None:
            handler = self.handlers[kind] = self.parts[kind]() if kind in self.parts else self._other
        fact = handler(node, env)
        if self.state.given.expressions:
            function = self.state.function.name if self.state.function is not None else ""
            fact = self.state.given.of_expression(function, node) or fact
        self.state.facts[node] = fact
        return fact

    def _constant(self, node: ast.Constant, env: Env) -> Fact:
        return constant_fact(node.value)

    def _name(self, node: ast.Name, env: Env) -> Fact:
        return env.get(node.id, UNKNOWN)

    def _attribute(self, node: ast.Attribute, env: Env) -> Fact:
        """``torch.cat`` is a name of torch; what else has attributes knows them itself."""
        owner = self.expr(node.value, env)
        if node.attr == "__name__" and (named := _class_name(node.value)) is not None:
            return named
        narrowed = env.get(dotted(node))
        if narrowed is not None:
            return narrowed
        if isinstance(owner, Qual):
            return self.member(owner.name, node.attr) or Qual(canonical(f"{owner.name}.{node.attr}"))
        return self.attribute(node, owner)

    def _other(self, node: ast.expr, env: Env) -> Fact:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.expr(child, env)
        return UNKNOWN

    def _sequence(self, node: ast.Tuple | ast.List, env: Env) -> Fact:
        items = [self.expr(e, env) for e in node.elts]
        if any(isinstance(e, ast.Starred) for e in node.elts):
            return ListOf(join_all(items))
        return Tuple(tuple(items)) if items else ListOf(NOTHING)

    def _set(self, node: ast.Set, env: Env) -> Fact:
        return ListOf(join_all([self.expr(e, env) for e in node.elts]))

    def _mapping(self, node: ast.Dict, env: Env) -> Fact:
        keys = [self.expr(k, env) for k in node.keys if k is not None]
        values = [self.expr(v, env) for v in node.values]
        return ListOf(join_all(values), join_all(keys) if keys else STR)

    def _starred(self, node: ast.Starred, env: Env) -> Fact:
        held = self.expr(node.value, env)
        self.state.uses.note_indexed(held)
        return iterated(held)

    def _fstring(self, node: ast.JoinedStr, env: Env) -> Fact:
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                self.expr(value.value, env)
                if value.format_spec is not None:
                    self.expr(value.format_spec, env)
        return STR


class Flow:
    """Facts through statements. Other parts hand over their handlers where a kind is first met."""

    def __init__(
        self, state: State, infer: Infer, parts: Mapping[type[ast.stmt], Callable[[], StatementFacts]]
    ) -> None:
        self.state = state
        self.infer = infer
        self.parts = parts
        self.handlers: dict[type[ast.stmt], StatementFacts] = {
            ast.Return: self._return,
            **dict.fromkeys((ast.Raise, ast.Continue, ast.Break), self._jump),
        }

    def block(self, body: Iterable[ast.stmt], env: Env) -> bool:
        """Infer statements in order; whether control falls out of the end."""
        falls = True
        for node in body:
            if not self.statement(node, env):
                falls = False
        return falls

    def statement(self, node: ast.stmt, env: Env) -> bool:
        """Infer one statement; whether control falls out of its end."""
        kind = type(node)
        handler = self.handlers.get(kind)
        if handler is None:
            handler = self.handlers[kind] = self.parts[kind]() if kind in self.parts else self._other
        return handler(node, env)

    def _other(self, node: ast.stmt, env: Env) -> bool:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.infer.expr(child, env)
        return True

    def _jump(self, node: ast.stmt, env: Env) -> bool:
        self._other(node, env)
        return False

    def _return(self, node: ast.Return, env: Env) -> bool:
        self.state.body.returned.append(self.infer.expr(node.value, env) if node.value else NONE)
        chosen = [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else [node.value]
        facts = (self.state.facts.get(value) for value in chosen if value is not None)
        self.state.body.tuples += [fact for fact in facts if isinstance(fact, Tuple)]
        return False


def _class_name(owner: ast.expr) -> Fact | None:
    """What the ``__name__`` of ``x.__class__`` and ``type(x)`` is."""
    match owner:
        case ast.Attribute(attr="__class__", value=value):
            return Object("class name", dotted(value))
        case ast.Call(func=ast.Name(id=name)):
            return Object("class name", dotted(owner.args[0])) if name == "type" else UNKNOWN
        case _:
            return None


def dotted(node: ast.expr) -> str:
    """``self.conv`` as text, empty for anything that isn't a chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def constant_fact(value: object) -> Fact:
    if value is None:
        return NONE
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return Scalar(kind.__name__, value)
    return UNKNOWN
