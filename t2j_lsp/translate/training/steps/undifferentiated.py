"""What surrounds train steps: it runs in Python, where nothing is differentiated."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.training.program.objects import Objects

from .training_steps import Steps


class Undifferentiated:
    """Puts handlers on detached values and blocks without gradients outside the steps."""

    def __init__(self, context: Context, objects: Objects, steps: Steps) -> None:
        self.ctx = context
        self.objects = objects
        self.steps = steps

    def plan(self) -> None:
        if not self.steps.converted:
            return
        inside = {n for s in self.steps.used for n in symbols.walk(s)}
        for node in self.ctx.source.nodes:
            if node in inside or self.objects.scope(node).node not in self.steps.hosts or self._in_lambda(node):
                continue
            if isinstance(node, ast.With):
                self.ctx.plan.undifferentiated.add(node)
            elif isinstance(node, ast.Call | ast.Attribute):
                self._detached(node)

    def _in_lambda(self, node: ast.AST) -> bool:
        place: ast.AST | None = node
        while place is not None and not isinstance(place, ast.stmt):
            if isinstance(place, ast.Lambda):
                return True
            place = self.ctx.source.parents.get(place)
        return False

    # --- values without gradient ----------------------------------------------------------------------------------

    def _detached(self, node: ast.Call | ast.Attribute) -> None:
        """``loss.detach()`` and ``labels.data`` are the arrays themselves."""
        match node:
            case ast.Call(func=ast.Attribute(attr="detach", value=value), args=[], keywords=[]):
                pass
            case ast.Attribute(attr="data", value=value, ctx=ast.Load()):
                pass
            case _:
                return
        fact = self.ctx.fact(value)
        if (
            isinstance(fact, Tensor)
            and fact.sure
            and not fact.variable
            and node not in self.ctx.plan.expression_handlers
        ):
            self.ctx.plan.on_expression(node, lambda renderer: self._itself(renderer, value))

    def _itself(self, renderer: ExpressionRenderer, value: ast.expr) -> Piece:
        self.ctx.report.count_converted()
        return renderer.render(value)
