"""Facts of items and slices."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from t2j_lsp.symbols import FunctionNode, ancestors
from t2j_lsp.translate.rule.definitions import Instance
from t2j_lsp.translate.rule.facts import (
    INT,
    UNKNOWN,
    AnyModule,
    Fact,
    Layer,
    ListOf,
    MixedDict,
    Object,
    Qual,
    Scalar,
    Shape,
    Tensor,
    Tuple,
    TypeAlias,
)
from t2j_lsp.translate.rule.join import element
from t2j_lsp.translate.rule.names import is_jax
from t2j_lsp.translate.source.folding.uses import runs
from t2j_lsp.translate.source.text import Source

from .annotations import annotation_fact
from .evidence import ParameterEvidence
from .forward_pass import CONTAINERS, Env, Infer, State


def _imports_jax(env: Env) -> bool:
    return any(isinstance(fact, Qual) and is_jax(fact.name) for fact in env.values())


class SubscriptFacts:
    """Items and slices."""

    def __init__(self, state: State, infer: Infer, evidence: ParameterEvidence, source: Source) -> None:
        self.state = state
        self.source = source
        self.infer = infer
        self.evidence = evidence

    def subscript(self, node: ast.Subscript, env: Env) -> Fact:
        owner = self.infer.expr(node.value, env)
        index = self.infer.expr(node.slice, env)
        if isinstance(node.value, ast.Attribute) and node.value.attr == "at" and _imports_jax(env):
            return Object("array", "jax.Array.at")  # an earlier conversion wrote it
        self.evidence.indexed(owner, node.slice)
        match owner:
            case _ if self._is_builtin_type(node.value, owner, env):
                return TypeAlias(annotation_fact(node, lambda n: self.infer.expr(n, env)))
            case Qual(name=name) if name.startswith(("typing.", "collections.abc.", "jaxtyping.")):
                return TypeAlias(annotation_fact(node, lambda n: self.infer.expr(n, env)))
            case Tuple() if isinstance(index, Scalar) and isinstance(index.value, int):
                if -len(owner.items) <= index.value < len(owner.items):
                    return owner.items[index.value]
                return UNKNOWN
            case MixedDict(items=items) if isinstance(index, Scalar):
                return dict(items).get(index.value, UNKNOWN)
            case Tuple() | ListOf() if isinstance(node.slice, ast.Slice):
                return ListOf(element(owner))
            case Shape():
                return Shape() if isinstance(node.slice, ast.Slice) else INT
            case Object(kind="array"):
                return owner
            case Tensor():
                return part_of(owner, node.slice, self.state.facts)
            case Layer() if owner.name in CONTAINERS:
                self.state.uses.note_indexed(owner, self._reads_child(node, owner))
                if isinstance(node.slice, ast.Slice):
                    return Layer(owner.name)
                if owner.items is not None and isinstance(index, Scalar) and isinstance(index.value, int):
                    if -len(owner.items) <= index.value < len(owner.items):
                        return owner.items[index.value]
                return element(owner) if owner.items is not None else AnyModule()
            case Instance() if owner.cls.info.layer_base in CONTAINERS:
                self.state.uses.note_indexed(owner)
                return AnyModule()
            case AnyModule():
                self.state.uses.note_indexed(owner)
                return AnyModule()
            case _:
                self.state.uses.indexes_own |= owner == UNKNOWN and not is_key(node.slice)
                return element(owner)

    def _is_builtin_type(self, node: ast.expr, owner: Fact, env: Env) -> bool:
        """Whether it is the builtin of a type's name, of which only types have items: ``tuple[Tensor, int]``."""
        names = ("dict", "frozenset", "list", "set", "tuple", "type")
        return owner == UNKNOWN and isinstance(node, ast.Name) and node.id in names and node.id not in env

    def _reads_child(self, node: ast.Subscript, owner: Layer) -> bool:
        """Whether the top level of a program reads a child, at a number, of what it made there: a setting, a value.

        What a loop or a function does with parts of a model may become a train step, and picks of parameters filters,
        which name the part by the source's text; what a class or a function makes, other files may read otherwise.
        """
        if not isinstance(node.ctx, ast.Load) or not is_number(node.slice) or not isinstance(node.value, ast.Name):
            return False
        parents = self.source.parents
        match parents.get(node):
            case ast.Call() as call if call.func is node:
                pass
            case ast.Assign(targets=[ast.Name()]):
                pass
            case ast.Attribute(ctx=ast.Load()) as read if not _of_training(read, parents.get(read)):
                pass
            case _:
                return False
        inner = ast.For | ast.AsyncFor | ast.While | ast.ClassDef | FunctionNode | ast.Lambda
        if owner.node is None or owner.node not in parents or not runs(self.source.tree):
            return False
        return not any(isinstance(one, inner) for at in (node, owner.node) for one in ancestors(at, parents))


def _of_training(read: ast.Attribute, around: ast.AST | None) -> bool:
    """Whether a child's method is called, or gradients or their switches are meant, of it or of a parameter."""
    match around:
        case ast.Call() if around.func is read:
            return True
        case ast.Attribute(ctx=ast.Load(), attr=name) if name not in ("grad", "requires_grad", "requires_grad_"):
            return read.attr == "grad"
        case ast.Attribute():
            return True
    return False


def is_key(index: ast.expr) -> bool:
    """Whether an index is none of a list of modules."""
    return isinstance(index, ast.Tuple) or isinstance(index, ast.Constant) and not isinstance(index.value, int)


def is_number(index: ast.expr) -> bool:
    """Whether an index is a number that is written out."""
    match index:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int()) | ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int())):
            return True
    return False


def part_of(owner: Tensor, index: ast.expr, facts: Mapping[ast.AST, Fact]) -> Tensor:
    """What an index takes of an array: a number takes an axis away, ``None`` gives one, a slice does neither.

    Arrays of whole numbers put their own axes in place of as many as there are of them.
    """
    return Tensor(_indexed_rank(owner.rank, index, facts), owner.dtype, owner.sure)


def _indexed_rank(rank: int | None, index: ast.expr, facts: Mapping[ast.AST, Fact]) -> int | None:
    if rank is None:
        return None
    own = 0
    for part in index.elts if isinstance(index, ast.Tuple) else [index]:
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
                match facts.get(part):
                    case Scalar(kind="int"):
                        pass
                    case Tensor(rank=int(axes), dtype="int"):
                        own = max(own, axes)
                    case _:
                        return None
                rank -= 1
    return rank + own
