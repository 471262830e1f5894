"""Gradients that another part of a program leaves in the parameters of a step that zeroes them only behind it.

``loss_d.backward(); opt_d.step(); opt_d.zero_grad()`` in one function, and ``loss_g.backward()`` of a loss that the
discriminator is called for in another: what that leaves is part of the discriminator's next step.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.backward import differentiates
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.training.program.flow import DataFlow
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.step_calls import Item, Phase, Reader, Refused, flatten, phases

from .effects import CallEffects
from .update import Optimized
from .updated_modules import UpdatedModules

LEFT_ELSEWHERE = (
    "The gradients are zeroed behind the step only, and {} leaves some of another loss in {}. Zero them in front of"
    " the backward pass."
)


class LeftElsewhere:
    """Looks for them in the other blocks and functions of a file."""

    def __init__(
        self, context: Context, objects: Objects, scope: VariableScope, flow: DataFlow, reader: Reader
    ) -> None:
        self.ctx = context
        self.objects = objects
        self.scope = scope
        self.flow = flow
        self.reader = reader

    def check(
        self, items: Sequence[Item], phase: Phase, optimized: Sequence[Optimized], updated: UpdatedModules
    ) -> None:
        """Raises Refused if an optimizer's modules are zeroed behind the step alone, and others leave gradients."""
        own = {items[i].node for i in phase.backs}
        for one in optimized:
            zeroed = (i for i, x in enumerate(items) if updated.zeroes(x.step_call, [one]))
            if not any(i <= phase.backs[0] for i in zeroed):
                self.check_one(one, own)

    def check_one(self, one: Optimized, own: Collection[ast.stmt]) -> None:
        """The same for one optimizer; ``own`` are the backward passes whose gradients it takes. Raises Refused."""
        for scope in (VariableScope(None), *map(VariableScope, self.ctx.inference.functions.values())):
            if scope.function is not None and scope.function.external or not self._differentiates(scope, own):
                continue
            for module in one.modules:
                seen = self.objects.seen_from(module, self.scope, scope)
                if seen is not None and self._leaves(scope, seen, own):
                    where = f"{scope.function.name}()" if scope.function is not None else "the module level"
                    raise Refused(
                        LEFT_ELSEWHERE.format(where if scope != self.scope else "another backward pass", module)
                    )

    def _body(self, scope: VariableScope) -> Sequence[ast.stmt]:
        return scope.function.node.body if scope.function is not None else self.ctx.source.tree.body

    def _differentiates(self, scope: VariableScope, own: Collection[ast.stmt]) -> bool:
        """Whether a scope has backward passes besides these."""
        inside = {node for statement in own for node in symbols.walk(statement)}
        statements = (s for s in self._body(scope) if not isinstance(s, ast.FunctionDef | ast.ClassDef))
        nodes = (n for s in statements for n in symbols.own_nodes(s))
        return any(differentiates(self.ctx.inference, n) and n not in inside for n in nodes)

    def _leaves(self, scope: VariableScope, module: str, own: Collection[ast.stmt]) -> bool:
        """Whether a backward pass of a scope reaches a module, and nothing behind it there zeroes its gradients."""
        updated = self._updated(scope)
        backs, zeros = list[int](), list[int]()
        for items in self._trainings(scope):
            for item in items:
                if item.step_call is not None and item.step_call.kind == "zero":
                    if self._covers(item.step_call.subject, module, scope):
                        zeros.append(item.node.lineno)
            apart = {i for i, item in enumerate(items) if self.reader.has_no_gradient(item.node)}
            for phase in phases(items):
                for index in phase.backs:
                    if items[index].node not in own and _reaches(updated, items, index, module, apart):
                        backs.append(items[index].node.lineno)
        return any(not any(zero > back for zero in zeros) for back in backs)

    def _updated(self, scope: VariableScope) -> UpdatedModules:
        own = self.objects.holder(scope)
        effects = CallEffects(self.ctx.inference, own)
        flow = DataFlow(self.ctx.source.symbols, own, self.flow.passed, effects=effects)
        return UpdatedModules(self.ctx, self.objects, scope, flow)

    def _trainings(self, scope: VariableScope) -> Iterator[list[Item]]:
        """The statements of each block with parts of training, those of conditional steps once."""
        seen = set[ast.stmt]()
        for block in symbols.blocks(self._body(scope)):
            if seen.isdisjoint(block):
                try:
                    items = flatten(block, self.reader)
                except Refused:
                    continue
                inner = (s for i in items if i.condition is not None for s in i.condition.body)
                seen |= {*inner, *(w for i in items for w in i.inside)}
                yield items

    def _covers(self, subject: ast.expr, module: str, scope: VariableScope) -> bool:
        """Whether zeroing the gradients of a module or an optimizer clears those of a module."""
        cleared = self.objects.modules(subject, scope) or (ast.unparse(subject),)
        return any(f"{module}.".startswith(f"{one}.") for one in cleared)


def _reaches(updated: UpdatedModules, items: Sequence[Item], index: int, module: str, apart: Collection[int]) -> bool:
    """Whether the loss of a backward pass depends on a module."""
    try:
        return updated.reaches(items, index, Optimized("", (module,)), apart)
    except Refused:
        return False
