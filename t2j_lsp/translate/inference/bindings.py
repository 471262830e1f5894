"""Assignments: facts of names, attributes, items and patterns of these."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from t2j_lsp.translate.rule.definitions import ClassInfo, Function, Instance, is_module
from t2j_lsp.translate.rule.facts import (
    INT,
    NONE,
    NOTHING,
    UNKNOWN,
    AnyModule,
    Fact,
    ListOf,
    Shape,
    Tensor,
    Tuple,
    is_tensor,
)
from t2j_lsp.translate.rule.join import assign, element, iterated
from t2j_lsp.translate.rule.nullness import may_be_none

from .annotations import annotation_fact
from .evidence import ParameterEvidence
from .forward_pass import Env, Infer, State, UnknownParameter, dotted
from .item_stores import only_arrays_take
from .operators import arithmetic
from .subscripts import part_of


class Bindings:
    """Assignments."""

    def __init__(self, state: State, infer: Infer, evidence: Callable[[], ParameterEvidence]) -> None:
        self.state = state
        self.infer = infer
        self.evidence = evidence

    def bind(self, target: ast.expr, fact: Fact, env: Env, value: ast.expr | None) -> None:
        """Assign a fact to a name, attribute, subscript or pattern of these."""
        match target:
            case ast.Name():
                if fact == UNKNOWN or isinstance(fact, UnknownParameter) or _is_empty(fact):
                    fact = self.state.assumed.get(target, fact)
                env[target.id] = fact
                self.state.facts[target] = fact
            case ast.Tuple() | ast.List():
                self._unpack(target, fact, env, value)
            case ast.Starred():
                self.bind(target.value, ListOf(UNKNOWN), env, None)
            case ast.Attribute():
                owner = self.infer.expr(target.value, env)
                self.state.facts[target] = fact
                env.pop(dotted(target), None)
                if isinstance(owner, Instance):
                    assign(owner.cls.info, target.attr, _kept(owner.cls.info, target.attr, fact), self.state.function)
                    if (
                        value is not None
                        and self.state.function is not None
                        and may_be_none(self.state.function, value)
                    ):
                        owner.cls.info.nullable.add(target.attr)
                    if is_tensor(fact) and dotted(target) and owner.cls.info.attribute(target.attr) == UNKNOWN:
                        env[dotted(target)] = fact  # Elsewhere something else; here, a tensor from now on.
            case ast.Subscript():
                container = self.infer.expr(target.value, env)
                self.infer.expr(target.slice, env)
                if is_module(container):
                    self.state.uses.note_indexed(container)
                elif container == UNKNOWN or isinstance(container, UnknownParameter):
                    self._written(target, container, fact, env)
                elif isinstance(container, Shape) and isinstance(target.value, ast.Name) and _is_minus_one(value):
                    env[target.value.id] = ListOf(INT)  # Sizes to be expanded to, not those of an array.
                self.state.facts[target] = (
                    part_of(container, target.slice, self.state.facts)
                    if isinstance(container, Tensor)
                    else element(container)
                )

    def _written(self, target: ast.Subscript, container: Fact, value: Fact, env: Env) -> None:
        """``x[:, 0] = 1`` says that x is a tensor, unless the file has other arrays too."""
        tensors = self.state.in_module() or not self.state.other_arrays or isinstance(value, Tensor)
        array = only_arrays_take(target, value, self.state.facts)
        if tensors and array and isinstance(container, UnknownParameter):
            self.evidence().add(container)
        elif tensors and array and isinstance(target.value, ast.Name):
            env[target.value.id] = self.state.facts[target.value] = Tensor(sure=False)
        else:
            self.state.callers.asks_callers |= array or isinstance(container, UnknownParameter)
            if array and self.state.function is not None and isinstance(target.value, ast.Name):
                self.state.callers.arrays_written.add((self.state.function, target.value.id))

    def _unpack(self, target: ast.Tuple | ast.List, fact: Fact, env: Env, value: ast.expr | None) -> None:
        if isinstance(fact, AnyModule):
            self.state.uses.unpacked.append(target)
        else:
            self.state.uses.note_indexed(fact)
        count = len(target.elts)
        starred = any(isinstance(e, ast.Starred) for e in target.elts)
        if isinstance(fact, Shape) and isinstance(value, ast.Attribute) and not starred:
            _learn_rank(value.value, count, env)
        elif isinstance(fact, Shape) and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            _learn_rank(value.func.value, count, env)
        if isinstance(value, ast.Call) and not (isinstance(fact, Tuple) and len(fact.items) == count):
            fact = self._returned(value, count) or fact
        if isinstance(fact, Tuple) and len(fact.items) == count and not starred:
            facts: list[Fact] = list(fact.items)
        else:
            facts = [INT if isinstance(fact, Shape) else iterated(fact)] * count
        for one, item in zip(target.elts, facts, strict=True):
            self.bind(one, item, env, None)

    def _returned(self, call: ast.Call, count: int) -> Tuple | None:
        """The tuple of this length that a function of the file returns in some case; what is unpacked is that one."""
        called = self.state.facts.get(call.func)
        info = called.info if isinstance(called, Function) else None
        if isinstance(called, Instance) and called.cls.info.is_module:
            info = called.cls.info.method("forward")
        return info.tuples.get(count) if info is not None else None

    def assign(self, node: ast.Assign, env: Env) -> bool:
        fact = self.infer.expr(node.value, env)
        for target in node.targets:
            self.bind(target, fact, env, node.value)
        return True

    def annotated(self, node: ast.AnnAssign, env: Env) -> bool:
        stated = annotation_fact(node.annotation, lambda n: self.infer.expr(n, env))
        self.infer.expr(node.annotation, env)
        if node.value is not None:
            fact = self.infer.expr(node.value, env)
            self.bind(node.target, stated if fact in (UNKNOWN, NONE) else fact, env, node.value)
        else:
            self.bind(node.target, stated, env, None)
        return True

    def augmented(self, node: ast.AugAssign, env: Env) -> bool:
        left = self.infer.expr(node.target, env)
        right = self.infer.expr(node.value, env)
        made = arithmetic(left, right, node.op)
        if isinstance(left, Tensor) and isinstance(made, Tensor) and left.rank is not None:
            made = replace(made, rank=left.rank)  # PyTorch writes in place
        self.bind(node.target, made, env, node.value)
        if isinstance(left, Tensor) and left.variable:  # a parameter stays one
            self.state.facts[node.target] = left
            if isinstance(node.target, ast.Name):
                env[node.target.id] = left
        return True


def _is_minus_one(value: ast.expr | None) -> bool:
    return value is not None and ast.unparse(value) == "-1"


def _is_empty(fact: Fact) -> bool:
    """Whether it is a container of which nothing is known yet."""
    return isinstance(fact, ListOf) and fact.item in (UNKNOWN, NOTHING)


def _learn_rank(node: ast.expr, rank: int, env: Env) -> None:
    """``b, c, h, w = x.shape`` says that x has four dims."""
    if isinstance(node, ast.Name):
        fact = env.get(node.id)
        if isinstance(fact, Tensor):
            env[node.id] = replace(fact, rank=rank)


def _kept(info: ClassInfo, name: str, fact: Fact) -> Fact:
    """A tensor assigned to an attribute that holds a parameter or buffer goes into that variable."""
    old = info.attribute(name)
    if is_tensor(fact) and isinstance(old, Tensor) and old.variable:
        return old
    return fact
