"""Facts through statements: branches, loops, and what falls out of them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from t2j_lsp.translate.rule.facts import NONE, UNKNOWN
from t2j_lsp.translate.rule.join import element
from t2j_lsp.translate.source.scopes import merge, replace_env

from .bindings import Bindings
from .evidence import Evidence
from .narrowing import Narrowing
from .state import Env, Infer, State

StatementFlow = Callable[[Any, Env], bool]
"""Infers a statement of one kind; whether control falls out of its end."""


class StatementFacts:
    """Statements, by their kind; ``handlers`` has those that bind names."""

    def __init__(
        self, state: State, infer: Infer, evidence: Evidence, narrowing: Narrowing, bindings: Bindings
    ) -> None:
        self.state = state
        self.infer = infer
        self.evidence = evidence
        self.narrowing = narrowing
        self.bindings = bindings
        self.handlers: dict[type[ast.stmt], StatementFlow] = {
            ast.Assign: bindings.assign,
            ast.AnnAssign: bindings.annotated,
            ast.AugAssign: bindings.augmented,
            ast.Return: self._return,
            **dict.fromkeys((ast.Raise, ast.Continue, ast.Break), self._jump),
            ast.If: self._if,
            **dict.fromkeys((ast.For, ast.AsyncFor, ast.While), self._loop),
            **dict.fromkeys((ast.With, ast.AsyncWith), self._with),
            ast.Try: self._try,
            ast.Match: self._match,
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
        handler = self.handlers.get(type(node))
        if handler is not None:
            return handler(node, env)
        self._expressions(node, env)
        return True

    def _expressions(self, node: ast.stmt, env: Env) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.infer.expr(child, env)

    def _jump(self, node: ast.stmt, env: Env) -> bool:
        self._expressions(node, env)
        return False

    def _return(self, node: ast.Return, env: Env) -> bool:
        self.state.body.returned.append(self.infer.expr(node.value, env) if node.value else NONE)
        return False

    def _if(self, node: ast.If, env: Env) -> bool:
        self.infer.expr(node.test, env)
        then, other = dict(env), dict(env)
        self.narrowing.narrow(node.test, then)
        if isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not):
            self.narrowing.narrow(node.test.operand, other)
        falls = self.block(node.body, then)
        self.evidence.default_given(node.test, env, then)
        falls_other = self.block(node.orelse, other) if node.orelse else True
        if falls and falls_other:
            merge(env, then, other)
        elif falls:
            replace_env(env, then)
        elif falls_other:
            replace_env(env, other)
        return falls or falls_other

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, env: Env) -> bool:
        for _ in range(2):
            inner = dict(env)
            if isinstance(node, ast.While):
                self.infer.expr(node.test, inner)
            else:
                self.bindings.bind(node.target, element(self.infer.expr(node.iter, inner)), inner, None)
            self.block(node.body, inner)
            merge(env, env, inner)
        self.block(node.orelse, env)
        return True

    def _with(self, node: ast.With | ast.AsyncWith, env: Env) -> bool:
        for item in node.items:
            fact = self.infer.expr(item.context_expr, env)
            if item.optional_vars is not None:
                self.bindings.bind(item.optional_vars, fact, env, None)
        return self.block(node.body, env)

    def _try(self, node: ast.Try, env: Env) -> bool:
        start = dict(env)
        self.block(node.body, env)
        for handler in node.handlers:
            caught = dict(start)
            if handler.type is not None:
                self.infer.expr(handler.type, caught)
            if handler.name is not None:
                caught[handler.name] = UNKNOWN
            if self.block(handler.body, caught):
                merge(env, env, caught)
        self.block(node.orelse, env)
        self.block(node.finalbody, env)
        return True

    def _match(self, node: ast.Match, env: Env) -> bool:
        self.infer.expr(node.subject, env)
        for case in node.cases:
            env.update(dict.fromkeys(_captured(case.pattern), UNKNOWN))
            if case.guard is not None:
                self.infer.expr(case.guard, env)
            self.block(case.body, env)
        return True


def _captured(pattern: ast.pattern) -> set[str]:
    """The names that a pattern of ``match`` binds."""
    names: set[str | None] = set()
    for node in ast.walk(pattern):
        match node:
            case ast.MatchAs(name=name) | ast.MatchStar(name=name) | ast.MatchMapping(rest=name):
                names.add(name)
    return {name for name in names if name is not None}
