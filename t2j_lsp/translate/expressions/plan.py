"""What is decided of a file before any of it is written."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from t2j_lsp.translate.layout.marks import Layout
from t2j_lsp.translate.rule.optimizer_plan import OptimizerPlan

from .handlers import ExpressionHandler, StatementHandler


@dataclass
class Plan:
    """What the planners of layout and training decided. Nothing is added once writing has begun."""

    layout: Layout = field(default_factory=Layout)
    shared_writes: dict[ast.stmt, str] = field(default_factory=dict)
    """Statements that write into storage which another name shares."""
    factory_dicts: set[ast.Assign] = field(default_factory=set)
    """Assignments of dicts that hold nothing but a device and a dtype."""
    statement_handlers: dict[ast.stmt, StatementHandler] = field(default_factory=dict)
    """What is done with statements that are part of training code, instead of rewriting them one by one."""
    expression_handlers: dict[ast.expr, ExpressionHandler] = field(default_factory=dict)
    """What expressions of training code become; None for their usual rewriting."""
    kept: set[ast.AST] = field(default_factory=set)
    """Classes, functions, statements and expressions that stay PyTorch on purpose, such as data pipelines."""
    optimizers: dict[ast.expr, OptimizerPlan] = field(default_factory=dict)
    """What is known of the optimizer that a constructor call makes."""
    train_steps: dict[ast.stmt, str] = field(default_factory=dict)
    """The statements that moved into a compiled function, and its name."""
    undifferentiated: set[ast.AST] = field(default_factory=set)
    """Statements around a compiled train step: they run in Python, where no gradient is taken of anything."""
    frozen: bool = False

    def on_statement(self, node: ast.stmt, handler: StatementHandler) -> None:
        """Have a statement written by ``handler``, in place of an earlier one."""
        assert not self.frozen, "plans are made before anything is written"
        self.statement_handlers[node] = handler

    def on_expression(self, node: ast.expr, handler: ExpressionHandler) -> None:
        """Have an expression rendered by ``handler``, in place of an earlier one."""
        assert not self.frozen, "plans are made before anything is written"
        self.expression_handlers[node] = handler

    def freeze(self) -> None:
        """Writing begins."""
        self.frozen = True
