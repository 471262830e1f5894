"""Facts of items and slices."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.facts import (
    INT,
    UNKNOWN,
    AnyModule,
    Fact,
    Instance,
    Layer,
    ListOf,
    Object,
    Scalar,
    Shape,
    Tensor,
    Tuple,
)
from t2j_lsp.translate.rule.join import element

from .evidence import ParameterEvidence
from .forward_pass import CONTAINERS, Env, Infer, State


class SubscriptFacts:
    """Items and slices."""

    def __init__(self, state: State, infer: Infer, evidence: ParameterEvidence) -> None:
        self.state = state
        self.infer = infer
        self.evidence = evidence

    def subscript(self, node: ast.Subscript, env: Env) -> Fact:
        owner = self.infer.expr(node.value, env)
        index = self.infer.expr(node.slice, env)
        self.evidence.indexed(owner, node.slice)
        match owner:
            case Tuple() if isinstance(index, Scalar) and isinstance(index.value, int):
                if -len(owner.items) <= index.value < len(owner.items):
                    return owner.items[index.value]
                return UNKNOWN
            case Tuple() | ListOf() if isinstance(node.slice, ast.Slice):
                return ListOf(element(owner))
            case Shape():
                return Shape() if isinstance(node.slice, ast.Slice) else INT
            case Object(kind="array"):
                return owner
            case Tensor():
                return Tensor(_indexed_rank(owner.rank, node.slice, index), owner.dtype, owner.sure)
            case Layer() if owner.name in CONTAINERS:
                self.state.note_indexed(owner)
                if isinstance(node.slice, ast.Slice):
                    return Layer(owner.name)
                if owner.items is not None and isinstance(index, Scalar) and isinstance(index.value, int):
                    if -len(owner.items) <= index.value < len(owner.items):
                        return owner.items[index.value]
                return element(owner) if owner.items is not None else AnyModule()
            case Instance() if owner.cls.info.layer_base in CONTAINERS:
                self.state.note_indexed(owner)
                return AnyModule()
            case AnyModule():
                self.state.note_indexed(owner)
                return AnyModule()
            case _:
                self.state.indexes_own |= owner == UNKNOWN and not is_key(node.slice)
                return element(owner)


def is_key(index: ast.expr) -> bool:
    """Whether an index is none of a list of modules."""
    return isinstance(index, ast.Tuple) or isinstance(index, ast.Constant) and not isinstance(index.value, int)


def _indexed_rank(rank: int | None, index: ast.expr, fact: Fact) -> int | None:
    if rank is None:
        return None
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if any(isinstance(p, ast.Starred) for p in parts):
        return None
    for part in parts:
        match part:
            case ast.Slice():
                pass
            case ast.Constant(value=None):
                rank += 1
            case ast.Constant(value=v) if v is Ellipsis:
                pass
            case ast.Constant(value=int()) | ast.UnaryOp(operand=ast.Constant(value=int())):
                rank -= 1
            case _:
                if isinstance(fact, Scalar) and fact.kind == "int" and len(parts) == 1:
                    rank -= 1
                else:
                    return None
    return rank
