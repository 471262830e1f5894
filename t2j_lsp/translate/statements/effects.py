"""Calls that are statements: those that go, and those that set a seed."""

from __future__ import annotations

import ast

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.inference.rngs import start_of_rngs
from t2j_lsp.translate.inference.unit_tests import seeds_all
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.record import REGISTRY

SEEDS = names_with(Trait.SEED)


def _is_about_memory(call: ast.Call) -> bool:
    """Whether a call says where the parameters of a recurrent layer lie, which nothing else has a method for."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "flatten_parameters" and not call.args


class Effects:
    """Calls for their effect."""

    def __init__(self, context: Context, renderer: ExpressionRenderer) -> None:
        self.ctx = context
        self.renderer = renderer

    def dropped(self, node: ast.Expr) -> bool:
        """``torch.backends...(True)`` and ``rnn.flatten_parameters()``: a call that goes."""
        if isinstance(node.value, ast.Call) and _is_about_memory(node.value):
            self.ctx.edits.delete(node)
            self.ctx.report.converted += 1
            return True
        fact = self.ctx.fact(node.value.func) if isinstance(node.value, ast.Call) else None
        rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
        if rule is None or not rule.drop:
            return False
        self.ctx.edits.delete(node)
        self.ctx.report.converted += 1
        return True

    def seed(self, node: ast.Expr) -> bool:
        """``torch.manual_seed(0)`` becomes the seed of the Rngs that the code after it uses."""
        call = node.value
        fact = self.ctx.fact(call.func) if isinstance(call, ast.Call) else None
        given = argument(call, 0, "seed") if isinstance(call, ast.Call) else None
        if given is None or not isinstance(fact, Qual) or fact.name not in SEEDS:
            return False
        assert isinstance(call, ast.Call)
        seed = self.renderer.render(given).text
        function = self.ctx.scope.function
        self.ctx.report.converted += 1
        if function is not None and seeds_all(function, self.ctx.inference):
            self.ctx.edits.delete(node)
            return True
        generator = f"{self.renderer.need('nnx')}.Rngs({seed})"
        if node in self.ctx.plan.seeds_torch:
            self.ctx.edits.insert_before(node, [self.ctx.source.segment(node)])
        self.ctx.edits.replace(call, start_of_rngs(function, generator) if function else f"rngs = {generator}")
        self.ctx.rngs.seeds[node] = "rngs"
        self.ctx.edits.removable[node] = "rngs"
        return True
