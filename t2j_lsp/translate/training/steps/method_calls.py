"""Methods of modules that a loop calls outside of its steps: ``agent.get_action_and_value(obs)`` is compiled, too."""

from __future__ import annotations

import ast

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.rule.definitions import FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Fact, Tensor, Tuple
from t2j_lsp.translate.rule.pieces import Piece, bracket
from t2j_lsp.translate.training.program.allocations import Allocations
from t2j_lsp.translate.training.program.objects import Objects

from .jittable import Jittable


class MethodCalls:
    """Puts handlers on calls that take arrays and give arrays."""

    def __init__(self, context: Context, objects: Objects, jittable: Jittable) -> None:
        self.ctx = context
        self.objects = objects
        self.jittable = jittable

    def called(self, node: ast.Call) -> FunctionInfo | None:
        """The method of a module that a call is of, if compiled code does the same each time."""
        func = node.func
        owner = self.ctx.fact(func.value) if isinstance(func, ast.Attribute) else None
        if not isinstance(func, ast.Attribute) or not isinstance(owner, Instance) or not is_module(owner):
            return None
        method = owner.cls.info.methods.get(func.attr)
        if method is None or func.attr == "forward" or method.external or method.static or method.takes_rngs:
            return None
        given = [self.ctx.fact(a) for a in node.args]
        if node.keywords or not given or not all(isinstance(fact, Tensor) for fact in given):
            return None
        if method.node.decorator_list or not _is_of_arrays(self.ctx.fact(node)):
            return None
        return method if self._problem(owner, method) is None else None

    def _problem(self, owner: Instance, method: FunctionInfo) -> str | None:
        return self.jittable.function_problem(method) or self.jittable.module_problem(owner)

    def plan(self, node: ast.Call, method: FunctionInfo) -> None:
        """Have a call go through a compiled function."""
        assert isinstance(node.func, ast.Attribute)
        module = node.func.value
        called = Allocations(self.objects).helper("call_method", ast.unparse(module))

        def handler(renderer: ExpressionRenderer) -> Piece:
            arguments = [bracket(renderer.argument(a), 1) for a in node.args]
            self.ctx.report.count_converted()
            given = ", ".join([renderer.argument(module).text, f'"{method.name}"', *arguments])
            return Piece(f"{renderer.need(called)}({given})")

        self.ctx.plan.on_expression(node, handler)


def _is_of_arrays(fact: Fact) -> bool:
    return (
        isinstance(fact, Tensor) or isinstance(fact, Tuple) and bool(fact.items) and all(map(_is_of_arrays, fact.items))
    )
