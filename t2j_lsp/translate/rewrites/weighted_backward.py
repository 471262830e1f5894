"""Backward passes of several numbers: ``errors.backward(weights)`` is ``(errors * weights).sum().backward()``.

PyTorch refuses weights of another shape than what is differentiated, and takes no gradient of them. Where a file that
has gaps does so, it is read as if it differentiated the sum.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp.contract import Finding
from t2j_lsp.translate.expressions.backward import differentiates
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText
from t2j_lsp.translate.source.text import Source
from t2j_lsp.translate.training.steps.input_gradients import are_ones


def with_weighted_losses_summed(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such passes differentiate a sum; None if there are none, or everything converts."""
    if not any(gap.code == "training-loop" for gap in gaps):
        return None
    edits: Edits = []
    for node in inference.source.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and differentiates(inference, node.value):
            edits += _summed(inference, node.value)
    return RearrangedText.of(inference.source.text, edits)


def _summed(inference: Inference, call: ast.Call) -> Edits:
    match call:
        case ast.Call(func=ast.Attribute(value=loss), args=[weights, *others], keywords=keywords):
            pass
        case ast.Call(func=ast.Attribute(value=loss), args=[], keywords=[ast.keyword("gradient", weights), *keywords]):
            others = []
        case _:
            return []
    if others or not isinstance(inference.fact(weights), Tensor) or any(k.arg != "retain_graph" for k in keywords):
        return []
    source = inference.source
    held = operand(source, loss)
    if are_ones(inference, call, weights):
        text = f"{held}.sum().backward()"
    else:
        given = operand(source, weights)
        kept = "" if _is_constant(inference, weights, set()) else ".detach()"
        text = f"({held} * {given}{kept}).sum().backward()"
    start, end = source.span(call)
    return [(start, end, [Fragment(text, start, end)])]


def operand(source: Source, node: ast.expr) -> str:
    """An expression as what a method is called on or an operator takes: in brackets where it needs them."""
    text = source.segment(node)
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call) else f"({text})"


def _is_constant(inference: Inference, node: ast.expr, seen: set[str]) -> bool:
    """Whether a tensor is made of numbers alone: ``torch.FloatTensor([1])``, ``one * -1``."""
    match node:
        case ast.Constant():
            return True
        case ast.List(elts=elts) | ast.Tuple(elts=elts):
            return all(_is_constant(inference, e, seen) for e in elts)
        case ast.UnaryOp(operand=inner):
            return _is_constant(inference, inner, seen)
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in names_with(Trait.MOVES):
            return _is_constant(inference, inner, seen)
        case ast.BinOp(left=left, right=right):
            return _is_constant(inference, left, seen) and _is_constant(inference, right, seen)
        case ast.Call(func=function, args=args):
            fact = inference.fact(function)
            known = isinstance(fact, Qual) and is_torch(fact.name)
            return known and all(_is_constant(inference, a, seen) for a in args)
        case ast.Name(id=name) if name not in seen:
            stores = [n for n in inference.source.nodes if isinstance(n, ast.Name | ast.arg) and _binds(n, name)]
            values = [_given(inference, n) for n in stores]
            return bool(values) and all(v is not None and _is_constant(inference, v, {*seen, name}) for v in values)
    return False


def _binds(node: ast.Name | ast.arg, name: str) -> bool:
    if isinstance(node, ast.arg):
        return node.arg == name
    return node.id == name and not isinstance(node.ctx, ast.Load)


def _given(inference: Inference, node: ast.AST) -> ast.expr | None:
    """The value that an assignment of one name gives it."""
    match inference.source.parents.get(node):
        case ast.Assign(targets=[ast.Name()], value=value):
            return value
    return None
