"""Facts of containers that are written out, and of strings."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.facts import NOTHING, STR, Fact, ListOf, Tuple
from t2j_lsp.translate.rule.join import element

from .state import Env, Infer, join_all


class Displays:
    """Containers that are written out, and strings."""

    def __init__(self, infer: Infer) -> None:
        self.infer = infer

    def sequence(self, node: ast.Tuple | ast.List, env: Env) -> Fact:
        items = [self.infer.expr(e, env) for e in node.elts]
        if any(isinstance(e, ast.Starred) for e in node.elts):
            return ListOf(join_all(items))
        return Tuple(tuple(items)) if items else ListOf(NOTHING)

    def set(self, node: ast.Set, env: Env) -> Fact:
        return ListOf(join_all([self.infer.expr(e, env) for e in node.elts]))

    def mapping(self, node: ast.Dict, env: Env) -> Fact:
        keys = [self.infer.expr(k, env) for k in node.keys if k is not None]
        values = [self.infer.expr(v, env) for v in node.values]
        return ListOf(join_all(values), join_all(keys) if keys else STR)

    def starred(self, node: ast.Starred, env: Env) -> Fact:
        return element(self.infer.expr(node.value, env))

    def fstring(self, node: ast.JoinedStr, env: Env) -> Fact:
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                self.infer.expr(value.value, env)
                if value.format_spec is not None:
                    self.infer.expr(value.format_spec, env)
        return STR
