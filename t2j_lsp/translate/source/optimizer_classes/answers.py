"""Tests of a step whose answer is known in JAX: what is asked for speed, of sparse gradients and of the compiler."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from t2j_lsp.translate.rule.library import Trait, names_with

SPEED = ("foreach", "fused", "capturable", "differentiable")
"""Options of an optimizer that say how PyTorch runs its operations, which come to the same values."""
_CHOICES = ("_default_to_fused_or_foreach", "_resolve_foreach")
_NEVER = names_with(Trait.FALSE)


def answered(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Statements without the branches that are never taken."""
    out: list[ast.stmt] = []
    for node in body:
        asked = (n for n in ast.walk(node) if isinstance(n, ast.If | ast.IfExp | ast.Assert))
        if any(answer(n.test) is not None for n in asked):
            out += _Answered().all([copy.deepcopy(node)])
        else:
            out.append(node)
    return out


def answer(test: ast.expr) -> bool | None:
    """What a test comes to; None where that isn't known."""
    match test:
        case ast.Constant(value=bool(known)):
            return known
        case ast.Attribute(attr="is_sparse"):
            return False
        case ast.Call(func=func) if ast.unparse(func) in _NEVER or ast.unparse(func).rpartition(".")[2] in _CHOICES:
            return False
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = answer(operand)
            return None if inner is None else not inner
        case ast.BoolOp(op=op, values=values):
            deciding = isinstance(op, ast.Or)
            answers = [answer(v) for v in values]
            if deciding in answers:
                return deciding
            return None if None in answers else not deciding
        case ast.Compare(left=ast.Constant(value=None), ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return True
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return False if is_for_speed(left) else None
    return False if is_for_speed(test) else None


def is_for_speed(node: ast.expr) -> bool:
    """Whether it is an option that only says how operations are run: ``foreach``, ``group["foreach"]``."""
    match node:
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(), slice=ast.Constant(value=str(name))):
            return name in SPEED
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr="get"), args=[ast.Constant(value=str(name)), *_]):
            return name in SPEED
    return False


def chooses_speed(node: ast.stmt) -> bool:
    """Whether a statement only gives values to what says how operations are run, or raises by them."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in SPEED
        case ast.Assign(targets=[ast.Tuple(elts=names)]):
            given = {n.id if isinstance(n, ast.Name) else "" for n in names}
            return bool(given & set(SPEED)) and given <= {"_", *SPEED}
        case ast.If(body=body, orelse=orelse):
            known = answer(node.test)
            taken = [*body, *orelse] if known is None else body if known else orelse
            chosen = [s for s in taken if not isinstance(s, ast.Raise | ast.Pass)]
            return bool(chosen) and all(map(chooses_speed, chosen))
    return False


class _Answered(ast.NodeTransformer):
    """Puts in what tests come to."""

    def all(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for node in body:
            made = self.visit(node)
            out += made if isinstance(made, list) else [made]
        return out

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        known = answer(node.test)
        if known is not None:
            return self.all(node.body if known else node.orelse) or ast.copy_location(ast.Pass(), node)
        node.test = self.visit(node.test)
        node.body, node.orelse = self.all(node.body), self.all(node.orelse)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node) if answer(node.test) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        known = answer(node.test)
        self.generic_visit(node)
        return node if known is None else node.body if known else node.orelse
