"""What a translation changed, piece by piece: its edits, and each torch expression with what it became."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp.contract import Rewrite, TextEdit
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.render import Renderer
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.source.text import Edit


def effective(edits: Iterable[Edit], own: frozenset[Edit]) -> tuple[TextEdit, ...]:
    """The edits that count, as `Source.apply` takes them: of two that overlap, the one that starts first.

    ``own`` are those of statements; the others are about imports and helpers.
    """
    found: list[TextEdit] = []
    position = 0
    for edit in sorted(set(edits), key=lambda e: (e.start, e.end, e.priority)):
        if edit.start >= position:
            found.append(TextEdit(edit.start, edit.end, edit.new, edit not in own))
            position = edit.end
    return tuple(found)


def rewrites(context: Context, renderer: Renderer) -> tuple[Rewrite, ...]:
    """The torch expressions of the source and their JAX text, in order of place, the outer one first."""
    found: list[Rewrite] = []
    for node, piece in renderer.rendered.items():
        name = _torch_name(context, node) if getattr(node, "lineno", 0) else None
        if name is None:
            continue
        start, end = context.source.span(node)
        changed = piece.text if piece.text != context.source.text[start:end] else None
        if changed is not None or isinstance(node, ast.Call):
            last = node in context.plan.layout.natural or node in context.plan.layout.wanted
            found.append(Rewrite(context.source.contract_span(node), name, changed, last))
    return tuple(sorted(found, key=lambda r: (r.span.line, r.span.column, -r.span.end_line, -r.span.end_column)))


def _torch_name(context: Context, node: ast.expr) -> str | None:
    """``torch.cat`` for a call of it, ``torch.Tensor.view`` for a method of a tensor; None for what is not torch's."""
    target = node.func if isinstance(node, ast.Call) else node
    fact = context.fact(target)
    if isinstance(fact, Qual):
        return fact.name if is_torch(fact.name) else None
    if isinstance(target, ast.Attribute) and isinstance(context.fact(target.value), Tensor):
        return f"torch.Tensor.{target.attr}"
    return None
