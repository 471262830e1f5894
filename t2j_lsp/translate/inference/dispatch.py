"""Facts of expressions and statements, each kind by its handler. Names, constants and displays are known here."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from t2j_lsp.translate.rule.facts import NONE, NOTHING, STR, UNKNOWN, Fact, ListOf, Object, Qual, Tuple
from t2j_lsp.translate.rule.join import element
from t2j_lsp.translate.rule.names import canonical

from .state import Env, Infer, State, constant_fact, dotted, join_all

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
        return element(self.expr(node.value, env))

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
