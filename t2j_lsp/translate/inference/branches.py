"""Facts through branches, loops and blocks, and what falls out of them."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact
from t2j_lsp.translate.rule.join import iterated
from t2j_lsp.translate.source.scopes import is_fallback, is_main, merge, merge_fallback, replace_env

from .bindings import Bindings
from .evidence import ParameterEvidence
from .forward_pass import Env, Flow, Infer
from .narrowing import Narrowing
from .versions import of_version


class Branches:
    """Statements that hold others."""

    def __init__(
        self, infer: Infer, flow: Flow, evidence: ParameterEvidence, narrowing: Narrowing, bindings: Bindings
    ) -> None:
        self.infer = infer
        self.flow = flow
        self.evidence = evidence
        self.narrowing = narrowing
        self.bindings = bindings

    def condition(self, node: ast.If, env: Env) -> bool:
        self.infer.expr(node.test, env)
        if is_main(node) and not node.orelse:
            return self.flow.block(node.body, env)
        then, other = dict(env), dict(env)
        self.narrowing.narrow(node.test, then)
        self.narrowing.narrow_false(node.test, other)
        if node.body and isinstance(node.body[-1], ast.Raise):  # of a neighbour, only what gives a name is read
            self.evidence.demanded(env, other)
        falls = self.flow.block(node.body, then)
        self.evidence.default_given(node.test, env, then)
        falls_other = self.flow.block(node.orelse, other) if node.orelse else True
        if (known := of_version(node.test, self._fact)) is not None:
            falls, falls_other = falls and known, falls_other and not known
        if falls and falls_other:
            merge(env, then, other)
        elif falls:
            replace_env(env, then)
        elif falls_other:
            replace_env(env, other)
        return falls or falls_other

    def _fact(self, node: ast.AST) -> Fact:
        return self.narrowing.facts.get(node, UNKNOWN)

    def assertion(self, node: ast.Assert, env: Env) -> bool:
        """``assert isinstance(x, torch.Tensor)``: so it is behind it, and whoever calls gives one."""
        self.infer.expr(node.test, env)
        self.infer.expr(node.msg, env)
        before = dict(env)
        self.narrowing.narrow(node.test, env)
        self.evidence.demanded(before, env)
        return True

    def loop(self, node: ast.For | ast.AsyncFor | ast.While, env: Env) -> bool:
        for _ in range(2):
            inner = dict(env)
            if isinstance(node, ast.While):
                self.infer.expr(node.test, inner)
            else:
                held = self.infer.expr(node.iter, inner)
                self.bindings.state.uses.note_indexed(held)
                self.bindings.bind(node.target, iterated(held), inner, None)
            self.flow.block(node.body, inner)
            merge(env, env, inner)
        self.flow.block(node.orelse, env)
        return True

    def with_block(self, node: ast.With | ast.AsyncWith, env: Env) -> bool:
        for item in node.items:
            fact = self.infer.expr(item.context_expr, env)
            if item.optional_vars is not None:
                self.bindings.bind(item.optional_vars, fact, env, None)
        return self.flow.block(node.body, env)

    def try_block(self, node: ast.Try, env: Env) -> bool:
        start = dict(env)
        self.flow.block(node.body, env)
        for handler in node.handlers:
            caught = dict(start)
            if handler.type is not None:
                self.infer.expr(handler.type, caught)
            if handler.name is not None:
                caught[handler.name] = UNKNOWN
            if self.flow.block(handler.body, caught):
                if is_fallback(node):
                    merge_fallback(env, node, dict(env), caught)
                else:
                    merge(env, env, caught)
        self.flow.block(node.orelse, env)
        self.flow.block(node.finalbody, env)
        return True

    def match_block(self, node: ast.Match, env: Env) -> bool:
        self.infer.expr(node.subject, env)
        ends: list[Env] = [] if any(map(_takes_all, node.cases)) else [dict(env)]
        for case in node.cases:
            inner = env | dict.fromkeys(_captured(case.pattern), UNKNOWN)
            if case.guard is not None:
                self.infer.expr(case.guard, inner)
            if self.flow.block(case.body, inner):
                ends.append(inner)
        for end in ends[:1]:
            replace_env(env, end)
        for end in ends[1:]:
            merge(env, dict(env), end)
        return bool(ends)


def _takes_all(case: ast.match_case) -> bool:
    """Whether a case is taken whatever the value is: ``case _:``."""
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


def _captured(pattern: ast.pattern) -> set[str]:
    """The names that a pattern of ``match`` binds."""
    names: set[str | None] = set()
    for node in symbols.walk(pattern):
        match node:
            case ast.MatchAs(name=name) | ast.MatchStar(name=name) | ast.MatchMapping(rest=name):
                names.add(name)
    return {name for name in names if name is not None}
