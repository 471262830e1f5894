"""What surrounds train steps: it runs in Python, where nothing is differentiated.

So do functions of a program that only this calls, ``evaluate(model, loader)``, and that only such functions call.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.source.folding.uses import runs
from t2j_lsp.translate.training.program.objects import Objects

from .training_steps import Steps

_DERIVATIVES = frozenset({"autograd", "grad", "func", "recorded"})
"""Words of a file that takes derivatives otherwise than by steps."""


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
        around = self.steps.hosts | self._apart(inside)
        for node in self.ctx.source.nodes:
            if not isinstance(node, ast.With | ast.Call | ast.Attribute) or node in inside:
                continue
            if self.objects.scope(node).node not in around or self._in_lambda(node):
                continue
            if isinstance(node, ast.With):
                self.ctx.plan.undifferentiated.add(node)
            else:
                self._detached(node)

    def _apart(self, inside: Collection[ast.AST]) -> set[ast.AST]:
        """The functions that no step, module or derivative calls: all plain ones, less those that one of these may."""
        source = self.ctx.source
        if self.steps.refused or _DERIVATIVES & source.words or not runs(source.tree):
            return set()
        plain = (info for info in self.ctx.inference.functions.values() if _is_plain(info))
        apart: dict[ast.AST, str] = {info.node: info.name for info in plain}
        named: dict[str, list[ast.expr]] = {name: [] for name in apart.values()}
        for node in source.nodes:
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
            if name in named and isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                named[name].append(node)
        while True:
            known = {None, *self.steps.hosts, *apart}
            fewer = {f: name for f, name in apart.items() if self._only_called(named[name], known, inside)}
            if fewer == apart:
                return set(apart)
            apart = fewer

    def _only_called(
        self, reads: list[ast.expr], around: Collection[ast.AST | None], inside: Collection[ast.AST]
    ) -> bool:
        """Whether what has a name is called, and nothing else, where nothing is differentiated."""
        return bool(reads) and all(
            isinstance(call := self.ctx.source.parents.get(read), ast.Call)
            and call.func is read
            and read not in inside
            and self.objects.scope(read).node in around
            and not self._in_lambda(read)
            for read in reads
        )

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


def _is_plain(info: FunctionInfo) -> bool:
    """Whether it is a function, or a method of a class that is no module, as it stands."""
    plain = isinstance(info.node, ast.FunctionDef) and not info.node.decorator_list and not info.name.startswith("__")
    return plain and info.outer is None and (info.owner is None or not info.owner.acts_as_module)
