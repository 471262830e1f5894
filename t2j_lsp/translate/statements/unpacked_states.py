"""State of a module that is one of several values: ``self.weights, out = attend(x)``."""

from __future__ import annotations

import ast
from collections.abc import Callable

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.rule.definitions import Instance
from t2j_lsp.translate.rule.facts import Tensor


def mark_unpacked(
    ctx: Context,
    renderer: ExpressionRenderer,
    node: ast.Assign,
    target: ast.Tuple,
    begins: Callable[[ast.Attribute, Instance], bool],
) -> None:
    """Mark arrays as data behind the assignment, of attributes that begin to be there, as ``begins`` tells."""
    lines: list[str] = []
    for part in target.elts:
        fact = ctx.fact(part)
        owner = ctx.fact(part.value) if isinstance(part, ast.Attribute) else None
        if not isinstance(part, ast.Attribute) or not isinstance(fact, Tensor) or not isinstance(owner, Instance):
            continue
        if owner.cls.info.is_module and not fact.variable and begins(part, owner) and _has_line(ctx, node):
            name = ctx.names.fresh(part.attr)
            ctx.edits.replace(part, name)
            lines.append(f"{ctx.source.segment(part)} = {renderer.need('nnx')}.data({name})")
    if lines:
        ctx.edits.insert_after(node, lines)


def _has_line(ctx: Context, node: ast.stmt) -> bool:
    """Whether no other statement stands on the lines of this one."""
    behind = ctx.source.text[ctx.source.span(node)[1] : ctx.edits.line_end(node)].strip()
    return ctx.source.starts_line(node) and (not behind or behind.startswith("#"))
