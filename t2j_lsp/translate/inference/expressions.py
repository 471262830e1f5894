"""Facts of expressions, by their kind."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from t2j_lsp.translate.rule.facts import NONE, UNKNOWN, Fact

from .state import Env, State, constant_fact

Handler = Callable[[Any, Env], Fact]
"""The fact of an expression of one kind."""


class Expressions:
    """Facts of expressions: each kind of node has its handler, the parts of which ask here for what is inside."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.handlers: dict[type[ast.expr], Handler] = {ast.Constant: self._constant, ast.Name: self._name}

    def expr(self, node: ast.expr | None, env: Env) -> Fact:
        """Infer one expression and remember its fact."""
        if node is None:
            return NONE
        handler = self.handlers.get(type(node))
        fact = handler(node, env) if handler is not None else self._other(node, env)
        self.state.facts[node] = fact
        return fact

    def _constant(self, node: ast.Constant, env: Env) -> Fact:
        return constant_fact(node.value)

    def _name(self, node: ast.Name, env: Env) -> Fact:
        return env.get(node.id, UNKNOWN)

    def _other(self, node: ast.expr, env: Env) -> Fact:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.expr(child, env)
        return UNKNOWN
