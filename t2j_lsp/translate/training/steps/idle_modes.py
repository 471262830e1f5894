"""Modes that are set in each step and make no difference: ``model.train()`` of a module without dropout or statistics.

In PyTorch that takes microseconds. Flax walks through the module for it, which takes longer than a small one's step.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.rule.definitions import Instance, is_module
from t2j_lsp.translate.rule.facts import Fact, Layer
from t2j_lsp.translate.source.folding.uses import runs

from .bound_calls import BoundCalls
from .modes import set_by

_KINDS = ("train", "eval")
_INNER = ast.For | ast.While | ast.AsyncFor | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


class IdleModes:
    """Leaves out the statements that set them, beside what is compiled and runs again and again."""

    def __init__(self, context: Context, bound: BoundCalls, compiled: Collection[ast.AST]) -> None:
        self.ctx = context
        self.bound = bound
        self.compiled = compiled
        """Statements of steps, and calls of modules in compiled functions."""

    def plan(self) -> None:
        if not runs(self.ctx.source.tree) or not self.bound.modes.make_no_difference:
            return  # another file may ask for the mode
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Expr) and node not in self.ctx.plan.statement_handlers and self._is_idle(node):
                self.ctx.plan.on_statement(node, self._left_out(node))

    def _left_out(self, node: ast.Expr) -> Callable[[StatementRewriter], None]:
        def handler(statements: StatementRewriter) -> None:
            self.ctx.edits.delete(node)
            self.ctx.report.count_converted()

        return handler

    def _is_idle(self, node: ast.Expr) -> bool:
        if not any(set_by(node, kind) for kind in _KINDS) or node in self.compiled:
            return False
        assert isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute)
        if not all(map(self._is_same, self.bound.allocations.facts(node.value.func.value))):
            return False
        block = self.ctx.source.block_of(node) or []
        compiled = any(n in self.compiled for other in block if other is not node for n in _run(other))
        return compiled and not self.bound.runs.runs_once(node)

    def _is_same(self, module: Fact) -> bool:
        """Whether a module computes the same in both modes, and setting one calls nothing of the file."""
        own = module.cls.info.ancestry() if isinstance(module, Instance) else ()
        known = isinstance(module, Instance | Layer) and is_module(module)
        return (
            known and not self.bound.modes.differ(module) and not any(k in one.methods for k in _KINDS for one in own)
        )


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """The code of a statement, without that of loops and functions in it."""
    if isinstance(node, _INNER):
        return
    yield node
    for child in symbols.children(node):
        yield from _run(child)
