"""Facts of calls of builtins."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.definitions import Instance
from t2j_lsp.translate.rule.facts import BOOL, FLOAT, INT, STR, UNKNOWN, Fact, ListOf, Object, Scalar, Shape, Tuple
from t2j_lsp.translate.rule.join import class_names, iterated, join_all

from .forward_pass import State, UnknownParameter

READERS = frozenset(("len", "enumerate", "zip", "list", "tuple", "set", "iter", "reversed", "sorted", "map", "filter"))
"""Builtins that read what a container holds."""


class BuiltinCalls:
    """Calls of builtins."""

    def __init__(self, state: State) -> None:
        self.state = state

    def call(self, node: ast.Call, name: str, arguments: list[Fact]) -> Fact:
        first = arguments[0] if arguments else UNKNOWN
        if name in READERS:
            for fact in arguments[name == "filter" :]:
                self.state.uses.note_indexed(fact)
        if name in ("float", "int", "bool"):
            self.state.callers.asks_callers |= isinstance(first, UnknownParameter)
        match name:
            case "len" | "int" | "ord" | "id" | "hash":
                return INT
            case "abs":
                return Scalar(first.kind) if isinstance(first, Scalar) else first
            case "round":
                return INT if len(arguments) < 2 else FLOAT
            case "float":
                return FLOAT
            case "bool" | "isinstance" | "issubclass" | "hasattr" | "callable" | "any" | "all":
                if name == "isinstance" and len(arguments) == 2:
                    self.state.uses.isinstance_classes.update(class_names(arguments[1]))
                    self.state.uses.isinstance_questions.add(frozenset(class_names(arguments[1])))
                return BOOL
            case "str" | "repr" | "format":
                return STR
            case "range":
                return ListOf(INT)
            case "enumerate":
                return ListOf(Tuple((INT, iterated(first))))
            case "zip":
                return ListOf(Tuple(tuple(map(iterated, arguments))))
            case "iter" if isinstance(first, Object) and first.kind in ("loader", "batches"):
                return Object("batches", first.name)
            case "list" | "tuple" | "sorted" | "set" | "iter":
                return (
                    first
                    if isinstance(first, Tuple | Shape)
                    else ListOf(iterated(first))
                    if arguments
                    else ListOf(UNKNOWN)
                )
            case "reversed":
                return ListOf(iterated(first))
            case "dict":
                return self._dict(node, first)
            case "next":
                return self.state.assumed.get(node, iterated(first))
            case "max" | "min":
                return iterated(first) if len(arguments) == 1 else join_all(arguments)
            case "sum":
                return iterated(first)
            case "type" if isinstance(first, Instance):
                return first.cls
            case "filter" if len(arguments) > 1:
                return ListOf(iterated(arguments[1]))
            case _:
                return UNKNOWN

    def _dict(self, node: ast.Call, first: Fact) -> Fact:
        """``dict(a=1, b=2)``, or a dict of what is given by place and by name."""
        named = [self.state.facts.get(keyword.value, UNKNOWN) for keyword in node.keywords if keyword.arg is not None]
        if node.args:
            copied = first if isinstance(first, ListOf) else ListOf(UNKNOWN, STR)
            if copied.keys is None and isinstance(pair := copied.item, Tuple) and len(pair.items) == 2:
                copied = ListOf(pair.items[1], pair.items[0])
            return ListOf(join_all([copied.item, *named]), copied.keys) if named else copied
        return ListOf(join_all(named) if len(named) == len(node.keywords) else UNKNOWN, STR)
