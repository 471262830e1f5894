"""``min(1.0, step / n)`` in a function that a step calls: ``jnp.minimum``, so that ``step`` may be an array.

Only where what it gives is computed with arrays and with nothing else, in the same function.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp import symbols
from t2j_lsp.symbols import function_around
from t2j_lsp.translate.expressions.context import Plan
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Scalar, Tensor
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.training.program.static_values import static_places

_FORMS = {"min": "minimum", "max": "maximum"}


class TracedExtremes:
    """Those of a file."""

    def __init__(self, inference: Inference, plan: Plan) -> None:
        self.inference = inference
        self.plan = plan
        self.parents = inference.source.parents

    def take(self, places: Sequence[ast.expr]) -> bool:
        """Whether nothing else needs to know a number that code reads in some places, and such calls may be arrays'."""
        facts = [self.inference.fact(place) for place in places]
        static = static_places([*places], self.inference)
        if not static or not all(isinstance(fact, Scalar) and fact.kind in ("int", "float") for fact in facts):
            return False
        calls = [self._extreme(place) for place in static]
        if not all(call is not None and self._is_computed_with(call, call) for call in calls):
            return False
        for call in calls:
            if call is not None and not self.plan.frozen:
                self.plan.on_expression(call, lambda renderer, call=call: _written(renderer, call))  # type: ignore[misc]
        return True

    def _extreme(self, node: ast.expr) -> ast.Call | None:
        """The call of ``min`` or ``max`` of two numbers that a value is given to, in a function."""
        place: ast.AST = node
        while isinstance(around := self.parents.get(place), ast.BinOp | ast.UnaryOp):
            place = around
        match around:
            case ast.Call(func=ast.Name(id=name), args=[first, second], keywords=[]) if name in _FORMS:
                starred = isinstance(first, ast.Starred) or isinstance(second, ast.Starred)
                own = name in self.inference.env or function_around(around, self.parents) is None
                return None if starred or own else around
        return None

    def _is_computed_with(self, node: ast.expr, call: ast.Call) -> bool:
        """Whether a value is a part of arrays' arithmetic wherever it goes."""
        place: ast.AST = node
        while isinstance(around := self.parents.get(place), ast.BinOp | ast.UnaryOp):
            if isinstance(self.inference.fact(around), Tensor):
                return True
            place = around
        function = function_around(call, self.parents)
        match around:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is place and function is not None:
                if around not in function.body:
                    return False
                named = [n for n in symbols.walk(function) if isinstance(n, ast.Name) and n.id == name]
                own = set(symbols.walk(around))
                stores = [n for n in named if not isinstance(n.ctx, ast.Load)]
                reads = [n for n in named if isinstance(n.ctx, ast.Load) and n not in own]
                return len(stores) == 1 and bool(reads) and all(self._is_computed_with(n, call) for n in reads)
        return False


def _written(renderer: ExpressionRenderer, call: ast.Call) -> Piece | None:
    assert isinstance(call.func, ast.Name)
    given = ", ".join(renderer.render(one).text for one in call.args)
    return Piece(f"{renderer.need('jnp')}.{_FORMS[call.func.id]}({given})")
