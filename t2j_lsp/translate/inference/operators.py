"""Facts of operators, conditions and choices."""

from __future__ import annotations

import ast
from dataclasses import replace

from t2j_lsp.translate.rule.definitions import Class, is_module, is_module_class
from t2j_lsp.translate.rule.facts import (
    BOOL,
    FLOAT,
    INT,
    STR,
    UNKNOWN,
    Fact,
    ListOf,
    Object,
    Qual,
    Scalar,
    Shape,
    Tensor,
    Tuple,
    TypeAlias,
)
from t2j_lsp.translate.rule.join import element, join, join_all
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, names_with

from .annotations import annotation_fact, is_type
from .evidence import ParameterEvidence
from .forward_pass import Env, Infer, UnknownParameter
from .narrowing import Narrowing


class OperatorFacts:
    """Operators, conditions and choices."""

    def __init__(self, infer: Infer, evidence: ParameterEvidence, narrowing: Narrowing) -> None:
        self.infer = infer
        self.evidence = evidence
        self.narrowing = narrowing

    def binary(self, node: ast.BinOp, env: Env) -> Fact:
        left, right = self.infer.expr(node.left, env), self.infer.expr(node.right, env)
        classes = [classes_of(left), classes_of(right)] if isinstance(node.op, ast.BitOr) else [()]
        if all(classes):
            return Tuple((*classes[0], *classes[1]))
        if isinstance(node.op, ast.BitOr) and (is_type(left) or is_type(right)):
            return TypeAlias(annotation_fact(node, lambda n: self.infer.expr(n, env)))
        return arithmetic(left, right, node.op)

    def unary(self, node: ast.UnaryOp, env: Env) -> Fact:
        inner = self.infer.expr(node.operand, env)
        match node.op, inner:
            case ast.Not(), _:
                return BOOL
            case ast.USub(), Scalar(value=int() | float() as value):
                return Scalar("int" if isinstance(value, bool) else inner.kind, -value)
            case ast.Invert(), Scalar():
                return Scalar("int" if inner.kind == "bool" else inner.kind)
            case _:
                return inner

    def compare(self, node: ast.Compare, env: Env) -> Fact:
        parts = [self.infer.expr(node.left, env), *(self.infer.expr(c, env) for c in node.comparators)]
        if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
            return BOOL
        ranks = [p.rank for p in parts if isinstance(p, Tensor)]
        if ranks:
            return Tensor(ranks[0] if len(set(ranks)) == 1 else None, "bool")
        if (array := next((p for p in parts if isinstance(p, Object) and p.kind == "array"), None)) is not None:
            return replace(array, dtype="bool")
        return UNKNOWN if any(p == UNKNOWN or isinstance(p, UnknownParameter) for p in parts) else BOOL

    def boolean(self, node: ast.BoolOp, env: Env) -> Fact:
        """``x and y``: y is read knowing that x is true, and in ``x or y`` that it isn't."""
        inner_env = dict(env)
        facts = []
        for value in node.values:
            facts.append(self.infer.expr(value, inner_env))
            if isinstance(node.op, ast.And):
                self.narrowing.narrow(value, inner_env)
            else:
                self.narrowing.narrow_false(value, inner_env)
        if isinstance(node.op, ast.Or) and is_module_class(facts[-1], LAYERS):
            return self.evidence.given_class(facts)
        return join_all(facts)

    def conditional(self, node: ast.IfExp, env: Env) -> Fact:
        self.infer.expr(node.test, env)
        then, other = dict(env), dict(env)
        self.narrowing.narrow(node.test, then)
        self.narrowing.narrow_false(node.test, other)
        branches = [self.infer.expr(node.body, then), self.infer.expr(node.orelse, other)]
        classes = [is_module_class(fact, LAYERS) for fact in branches]
        match node.test:
            case ast.Call(func=ast.Name(id="callable")) if classes[1] and is_module(branches[0]):
                return branches[0]  # ``d() if callable(d) else d`` of a class
        if any(classes) and not any(map(is_module, branches)):
            return self.evidence.given_class(branches)
        return join_all(branches)


def as_number(fact: Fact) -> Fact:
    """The fact of the number that a library object is, ``math.pi``; of anything else its own."""
    return FLOAT if isinstance(fact, Qual) and fact.name in names_with(Trait.NUMBER) else fact


def classes_of(fact: Fact) -> tuple[Fact, ...]:
    """The classes that ``nn.Linear | nn.Embedding`` stands for in ``isinstance``, or a side of it; empty for others."""
    if isinstance(fact, Tuple) and fact.items and all(map(classes_of, fact.items)):
        return fact.items
    return (fact,) if isinstance(fact, Class) or isinstance(fact, Qual) and fact.name in LAYERS else ()


def arithmetic(left: Fact, right: Fact, op: ast.operator) -> Fact:
    """The fact of ``left op right``."""
    left, right = as_number(left), as_number(right)
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        tensors = [f for f in (left, right) if isinstance(f, Tensor)]
        ranks = {t.rank for t in tensors}
        sizes = {rank for rank in ranks if rank is not None}
        rank = max(sizes) if len(sizes) == len(ranks) and not isinstance(op, ast.MatMult) else None
        dtypes = {t.dtype for t in tensors}
        dtype = dtypes.pop() if len(dtypes) == 1 else None
        if isinstance(op, ast.Div) or dtype == "bool" and not isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor):
            dtype = None if dtype == "bool" and not isinstance(op, ast.Div) else "float"
        if len(tensors) == 1 and dtype == "int" and left not in (INT, BOOL) and right not in (INT, BOOL):
            other = right if isinstance(left, Tensor) else left
            dtype = "int" if isinstance(other, Scalar) and other.kind == "int" else None
        return Tensor(rank, dtype, all(t.sure for t in tensors))
    for fact in (left, right):
        if isinstance(fact, Object) and fact.kind == "array":
            return replace(fact, dtype=None)
    if isinstance(left, Tuple | ListOf | Shape) and isinstance(op, ast.Add):
        if isinstance(left, Tuple) and isinstance(right, Tuple):
            return Tuple(left.items + right.items)
        return join(left, right) if isinstance(right, Tuple | ListOf | Shape) else UNKNOWN
    if isinstance(op, ast.Mult) and isinstance(left, Tuple | ListOf) and isinstance(right, Scalar):
        return ListOf(element(left))
    if isinstance(left, Scalar) and isinstance(right, Scalar):
        if left.kind == "str" or right.kind == "str":
            return STR
        if isinstance(op, ast.Div):
            return FLOAT
        return FLOAT if "float" in (left.kind, right.kind) else INT
    if isinstance(left, Scalar) or isinstance(right, Scalar):
        known, other = (left, right) if isinstance(left, Scalar) else (right, left)
        if isinstance(other, UnknownParameter) and isinstance(known, Scalar) and known.kind in ("int", "float"):
            return other  # what is asked of 0.5 * x tells of x
        return STR if known == STR else UNKNOWN
    return UNKNOWN
