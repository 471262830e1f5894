"""``model.state_dict()[name].copy_(value)``: what is copied into a tensor of a state goes into the module."""

from __future__ import annotations

import ast

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.inference.module_states import copied_into
from t2j_lsp.translate.rule.pieces import ATOM, bracket

_IN_TESTS = "in a file of tests a state is a dict of arrays, which writes nothing into the module: use load_state_dict"


class StateCopies:
    """Copies into states, each of which a `StateDict` writes into its module."""

    def __init__(self, context: Context, renderer: ExpressionRenderer) -> None:
        self.ctx = context
        self.renderer = renderer

    def copy(self, node: ast.Expr) -> bool:
        """Write such a copy; whether it was one."""
        one = copied_into(self.ctx.source, self.ctx.fact, node)
        if one is None:
            return False
        if self.ctx.inference.holds_tests:
            self.ctx.report.gap(node, "in-place", "in-place-shared", _IN_TESTS)
            return True
        state, name, value = (self.renderer.render(part) for part in one)
        self.ctx.edits.replace(node, f"{bracket(state, ATOM)}.write({name.text}, {value.text})")
        self.ctx.report.count_converted()
        return True
