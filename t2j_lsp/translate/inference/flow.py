"""Facts through statements: assignments, branches and loops."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from t2j_lsp.translate.rule.facts import (
    INT,
    NONE,
    UNKNOWN,
    ClassInfo,
    Fact,
    Instance,
    ListOf,
    Shape,
    Tensor,
    Tuple,
    is_tensor,
)
from t2j_lsp.translate.rule.join import assign, element
from t2j_lsp.translate.rule.nullness import may_be_none
from t2j_lsp.translate.source.scopes import merge, replace_env

from .annotations import annotation_fact
from .expressions import ExpressionInference
from .state import Parameter, dotted


class FlowInference(ExpressionInference):
    """Statements, for the inference of a file."""

    assumed: Mapping[ast.AST, Fact]

    if TYPE_CHECKING:

        def bind_import(self, node: ast.Import | ast.ImportFrom, env: dict[str, Fact]) -> None: ...
        def declare_class(self, node: ast.ClassDef, env: dict[str, Fact]) -> ClassInfo: ...
        def _function_statement(self, node: ast.FunctionDef | ast.AsyncFunctionDef, env: dict[str, Fact]) -> None: ...

    def block(self, body: Iterable[ast.stmt], env: dict[str, Fact]) -> bool:
        """Infer statements in order; whether control falls out of the end."""
        falls = True
        for node in body:
            if not self.statement(node, env):
                falls = False
        return falls

    def statement(self, node: ast.stmt, env: dict[str, Fact]) -> bool:
        match node:
            case ast.Import() | ast.ImportFrom():
                self.bind_import(node, env)
            case ast.ClassDef():
                info = self.declare_class(node, env)
                for decorator in node.decorator_list:
                    self.expr(decorator, env)
                self.infer_class(info)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function_statement(node, env)
            case ast.Return():
                self.returned.append(self.expr(node.value, env) if node.value else NONE)
                return False
            case ast.Raise() | ast.Continue() | ast.Break():
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.expr(child, env)
                return False
            case ast.Assign():
                fact = self.expr(node.value, env)
                for target in node.targets:
                    self.bind(target, fact, env, node.value)
            case ast.AnnAssign():
                stated = annotation_fact(node.annotation, lambda n: self.expr(n, env))
                self.expr(node.annotation, env)
                if node.value is not None:
                    fact = self.expr(node.value, env)
                    self.bind(node.target, stated if fact in (UNKNOWN, NONE) else fact, env, node.value)
                else:
                    self.bind(node.target, stated, env, None)
            case ast.AugAssign():
                left = self.expr(node.target, env, load=True)
                right = self.expr(node.value, env)
                self.bind(node.target, self.arithmetic(left, right, node.op), env, node.value)
                if isinstance(left, Tensor) and left.variable:
                    self.facts[node.target] = left  # a parameter stays one
            case ast.If():
                return self._if(node, env)
            case ast.For() | ast.AsyncFor() | ast.While():
                self._loop(node, env)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    fact = self.expr(item.context_expr, env)
                    if item.optional_vars is not None:
                        self.bind(item.optional_vars, fact, env, None)
                return self.block(node.body, env)
            case ast.Try():
                self._try(node, env)
            case ast.Match():
                self.expr(node.subject, env)
                for case in node.cases:
                    env.update(dict.fromkeys(_captured(case.pattern), UNKNOWN))
                    if case.guard is not None:
                        self.expr(case.guard, env)
                    self.block(case.body, env)
            case ast.Delete():
                for target in node.targets:
                    self.expr(target, env, load=True)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.expr(child, env)
        return True

    def _if(self, node: ast.If, env: dict[str, Fact]) -> bool:
        self.expr(node.test, env)
        then, other = dict(env), dict(env)
        self.narrow(node.test, then)
        if isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not):
            self.narrow(node.test.operand, other)
        falls = self.block(node.body, then)
        self._default_given(node.test, env, then)
        falls_other = self.block(node.orelse, other) if node.orelse else True
        if falls and falls_other:
            merge(env, then, other)
        elif falls:
            replace_env(env, then)
        elif falls_other:
            replace_env(env, other)
        return falls or falls_other

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, env: dict[str, Fact]) -> None:
        for _ in range(2):
            inner = dict(env)
            if isinstance(node, ast.While):
                self.expr(node.test, inner)
            else:
                self.bind(node.target, element(self.expr(node.iter, inner)), inner, None)
            self.block(node.body, inner)
            merge(env, env, inner)
        self.block(node.orelse, env)

    def _try(self, node: ast.Try, env: dict[str, Fact]) -> None:
        start = dict(env)
        self.block(node.body, env)
        for handler in node.handlers:
            caught = dict(start)
            if handler.type is not None:
                self.expr(handler.type, caught)
            if handler.name is not None:
                caught[handler.name] = UNKNOWN
            if self.block(handler.body, caught):
                merge(env, env, caught)
        self.block(node.orelse, env)
        self.block(node.finalbody, env)

    def bind(self, target: ast.expr, fact: Fact, env: dict[str, Fact], value: ast.expr | None) -> None:
        """Assign a fact to a name, attribute, subscript or pattern of these."""
        match target:
            case ast.Name():
                if fact == UNKNOWN or isinstance(fact, Parameter):
                    fact = self.assumed.get(target, fact)
                env[target.id] = fact
                self.facts[target] = fact
            case ast.Tuple() | ast.List():
                self._unpack(target, fact, env, value)
            case ast.Starred():
                self.bind(target.value, ListOf(UNKNOWN), env, None)
            case ast.Attribute():
                owner = self.expr(target.value, env)
                self.facts[target] = fact
                env.pop(dotted(target), None)
                if isinstance(owner, Instance):
                    assign(owner.cls.info, target.attr, _kept(owner.cls.info, target.attr, fact), self.current)
                    if value is not None and self.current is not None and may_be_none(self.current, value):
                        owner.cls.info.nullable.add(target.attr)
                    if is_tensor(fact) and dotted(target) and owner.cls.info.attribute(target.attr) == UNKNOWN:
                        env[dotted(target)] = fact  # Elsewhere something else; here, a tensor from now on.
            case ast.Subscript():
                container = self.expr(target.value, env)
                self.expr(target.slice, env)
                self.facts[target] = element(container)

    def _unpack(self, target: ast.Tuple | ast.List, fact: Fact, env: dict[str, Fact], value: ast.expr | None) -> None:
        count = len(target.elts)
        starred = any(isinstance(e, ast.Starred) for e in target.elts)
        if isinstance(fact, Shape) and isinstance(value, ast.Attribute) and not starred:
            self.learn_rank(value.value, count, env)
        elif isinstance(fact, Shape) and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            self.learn_rank(value.func.value, count, env)
        if isinstance(fact, Tuple) and len(fact.items) == count and not starred:
            facts: list[Fact] = list(fact.items)
        else:
            facts = [INT if isinstance(fact, Shape) else element(fact)] * count
        for one, item in zip(target.elts, facts, strict=True):
            self.bind(one, item, env, None)


def _kept(info: ClassInfo, name: str, fact: Fact) -> Fact:
    """A tensor assigned to an attribute that holds a parameter or buffer goes into that variable."""
    old = info.attribute(name)
    if is_tensor(fact) and isinstance(old, Tensor) and old.variable:
        return old
    if isinstance(fact, Parameter):
        return UNKNOWN
    return fact


def _captured(pattern: ast.pattern) -> set[str]:
    """The names that a pattern of ``match`` binds."""
    names: set[str | None] = set()
    for node in ast.walk(pattern):
        match node:
            case ast.MatchAs(name=name) | ast.MatchStar(name=name) | ast.MatchMapping(rest=name):
                names.add(name)
    return {name for name in names if name is not None}
