"""``torch.tensor([a, b])`` of tensors: each counts as the number that it holds, whatever its axes; JAX stacks them."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.facts import Fact, ListOf, Tensor, Tuple
from t2j_lsp.translate.rule.pieces import ATOM, Piece, bracket, precedence
from t2j_lsp.translate.rule.record import Argument, Call

from ._arguments import parts


def holds_axes(fact: Fact) -> bool:
    """Whether a value is a tensor that may have axes: PyTorch takes it for a number, so it has one element."""
    return isinstance(fact, Tensor) and fact.sure and fact.rank != 0


def is_flat(call: Call, data: Argument) -> bool:
    """Whether a list holds such tensors alone, so that JAX gives an array with their axes, too."""
    items = parts(data)
    if items is not None:
        return bool(items) and all(holds_axes(call.site.fact(item)) for item in items)
    match data.fact:
        case ListOf(item=item, keys=None):
            return holds_axes(item)
        case Tuple(items=held):
            return any(map(holds_axes, held))
    return False


def as_numbers(call: Call, data: Argument) -> Argument | Piece:
    """A list with such tensors beside numbers, in which each is a number: ``[value.squeeze(), 2.0]``."""
    items = parts(data)
    if items is None or is_flat(call, data) or not _has_axes(call, data.node):
        return data
    return Piece(_written(call, data.node, data.piece.text), ATOM)


def _has_axes(call: Call, node: ast.expr | None) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return any(_has_axes(call, item) for item in node.elts)
    return node is not None and holds_axes(call.site.fact(node))


def _written(call: Call, node: ast.expr | None, text: str) -> str:
    """The text of a list, or of an item of it, with the tensors in it as numbers."""
    text = text.strip()
    if isinstance(node, ast.List | ast.Tuple):
        display = ast.parse(f"({text})" if text[:1] not in "([" else text, mode="eval").body
        assert isinstance(display, ast.List | ast.Tuple)
        texts = [ast.get_source_segment(text, item) or ast.unparse(item) for item in display.elts]
        return f"[{', '.join(_written(call, one, item) for one, item in zip(node.elts, texts, strict=True))}]"
    if node is None or not holds_axes(call.site.fact(node)):
        return text
    return f"{bracket(Piece(text, precedence(ast.parse(text, mode='eval').body)), ATOM)}.squeeze()"
