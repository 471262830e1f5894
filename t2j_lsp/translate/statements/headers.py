"""The expressions that belong to a statement itself: rendered, and put in their place."""

from __future__ import annotations

import ast

from t2j_lsp.translate.expressions.annotations import Annotations
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.copying import Copier, children
from t2j_lsp.translate.rule.precedence import ANY, ATOM, bracket, breaks_line


class Headers:
    """Rewrites the expressions of a statement."""

    def __init__(self, context: Context, copier: Copier, annotations: Annotations) -> None:
        self.ctx = context
        self.copier = copier
        self.annotations = annotations

    def expressions(self, node: ast.AST) -> None:
        """Render every expression that belongs to the statement itself."""
        for parent, field, child in children(node):
            self.expression(parent, field, child)

    def expression(self, parent: ast.AST, field: str, child: ast.expr) -> None:
        """Rewrite one expression of a statement."""
        piece = self.copier.render_in(parent, field, child)
        if piece.text != self.ctx.source.segment(child):
            text = piece.text
            start, end = self.ctx.source.span(child)
            if breaks_line(text) and self.ctx.source.concrete.around(start, end) is None:
                text = bracket(piece, ATOM) if piece.precedence < ATOM else text
            # A call that became an assignment takes the place of the whole statement, with any brackets around it.
            self.ctx.edits.replace(parent if isinstance(parent, ast.Expr) and piece.precedence == ANY else child, text)

    def annotation(self, node: ast.expr | None) -> None:
        """Rewrite an annotation."""
        if node is None:
            return
        with self.annotations.within():
            self.expression(ast.Module([], []), "annotation", node)
