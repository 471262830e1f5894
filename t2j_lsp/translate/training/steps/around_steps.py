"""What a loop computes for a step and with its results, noise and an accuracy, is compiled with it.

An operation of its own costs more than a small model's step. What is made of arrays in front of the step moves into it,
and so does what reads nothing behind it but what the step is given, or gives: ``correct += (out.argmax(1) == y).sum()``
is ``correct += batch_correct``, of which the step gives the latter in place of ``out``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.tensors import is_array_tree
from t2j_lsp.translate.training.data.batch_loops import is_move
from t2j_lsp.translate.training.program.allocations import Allocations
from t2j_lsp.translate.training.program.step_calls import Item, Refused

from .array_code import ArrayCode, measured_name, outermost
from .composed_step import base_of
from .parameter_loops import ParameterLoops
from .step import StepWriter
from .update import Measure, Update
from .updates import Updates

_SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr)


@dataclass
class AroundSteps:
    """Looks at the statements around the updates of one scope."""

    ctx: Context
    updates: Updates
    writer: StepWriter

    @cached_property
    def code(self) -> ArrayCode:
        return ArrayCode(self.ctx, self.updates.flow, self.updates.jittable)

    def taken_up(self, updates: Sequence[Update]) -> list[Update]:
        """The updates of a block with what may move into each as well."""
        if any(update.slice.shared for update in updates):
            return [*updates]
        out = [*updates]
        for index in reversed(range(len(out))):  # what is made for a later step of an earlier one's results moves there
            others = {i for one in out if one is not out[index] for i in (*one.slice.moved, *one.slice.split)}
            before = updates[index - 1].last + 1 if index else 0
            behind = updates[index + 1].first if index + 1 < len(updates) else len(updates[index].items)
            out[index] = self._with(out[index], [i for i in range(before, behind) if i not in others])
            if self._compiled(out[index]):
                loops = ParameterLoops(self.ctx, self.updates, self.code).behind(out[index])
                out[index] = replace(out[index], loops=loops)
        return out

    def _with(self, update: Update, near: Collection[int]) -> Update:
        """The update with those of the items ``near`` it that may move into it."""
        if not self._compiled(update) or not update.slice.moved:
            return update
        new = self._with_results(update, near)
        update = new if self._compiles(new) and self._inputs(new) == self._inputs(update) else update
        without: list[int] = []
        for index in range(update.slice.call - 1, -1, -1):
            if index in near and index not in update.slice.moved and self._is_made_for(update, index):
                moved = sorted([index, *update.slice.moved])
                new = replace(update, slice=replace(update.slice, moved=moved))
                if self._compiles(new) and self._is_done_in(new, index) and self._known(new) == self._known(update):
                    update = new
                    without += [index]
        for index in without:
            self._undifferentiated(update, index)
        return update

    def _compiled(self, update: Update) -> bool:
        """Whether an update is one compiled step of modules."""
        compiled = update.mode == "fused" and not update.once and not update.whole
        return compiled and not any(one.state for one in update.optimized)

    def _undifferentiated(self, update: Update, index: int) -> None:
        """Say of what stands without gradients in front of a step that none reaches it: it reads nothing trained."""
        node, flow = update.items[index].node, self.updates.flow
        trained = {base_of(flow, module) for one in update.optimized for module in one.modules}
        made = set[str]().union(*(flow.writes(update.items[i].node) for i in update.slice.moved if i < index))
        if isinstance(node, ast.With) and flow.reads(node).isdisjoint(trained | made):
            self.ctx.plan.undifferentiated.add(node)

    def _compiles(self, update: Update) -> bool:
        """Whether an update can be compiled; what it gives is known then."""
        try:
            self.updates.check_trace(update)
            self.writer.check(update)
            update.live = self.updates.live(update)
        except Refused:
            return False
        return not update.once

    def _inputs(self, update: Update) -> dict[str, tuple[object, ...]]:
        inputs = self.writer.inputs(update)
        return {text: (one.kind, one.given, one.texts, one.positions) for text, one in inputs.items()}

    # --- in front of the step -------------------------------------------------------------------------------------

    def _is_made_for(self, update: Update, index: int) -> bool:
        """Whether an item makes arrays for the step, and may as well make them in it."""
        items, made, flow = update.items, update.slice, self.updates.flow
        node = items[index].node
        values = self._values(node)
        if not values or not self._may_join(update, index) or not all(map(self.code.is_computed, values)):
            return False
        handlers = self.ctx.plan.expression_handlers
        if any(n in handlers and is_move(n) for n in symbols.walk(node)):
            return False  # a batch of PyTorch's becomes arrays here: ``x = x.to("cuda")``
        own = flow.writes(node) if isinstance(node, ast.With) else set[str]()
        read = (n for value in values for n in self.code.variables(value) if flow.variable(n) not in own)
        if not all(map(self.code.is_passed, read)):
            return False
        code = [*(items[i].node for i in made.moved), *(loss for _, loss in update.losses)]
        if not any(flow.writes(node) & flow.reads(one) for one in code):
            return False
        between = [items[i].node for i in range(index + 1, made.call) if i not in made.moved and _is_plain(items[i])]
        reads, writes = flow.reads(node), flow.writes(node)
        if any(self.code.changes(one) & (reads | writes) or flow.reads(one) & writes for one in between):
            return False
        draws = any(map(self.code.draws, values))
        return not draws or not any(map(self._may_draw, between)) and self._draws_outside

    def _values(self, node: ast.stmt) -> list[ast.expr]:
        """The arrays that a statement gives variables, also one in which nothing is differentiated; else none."""
        if not isinstance(node, ast.With) or not self.updates.reader.has_no_gradient(node):
            return [value for value in (self.code.assigns(node),) if value is not None]
        values = [value for one in node.body for value in (self.code.assigns(one),) if value is not None]
        return values if len(values) == len(node.body) else []

    def _may_draw(self, node: ast.AST) -> bool:
        """Whether a statement draws, or calls what may."""
        calls = (n for n in symbols.walk(node) if isinstance(n, ast.Call))
        return self.code.draws(node) or any(is_module(self.ctx.fact(call.func)) for call in calls)

    @cached_property
    def _draws_outside(self) -> bool:
        """Whether random numbers of this scope come from a variable, and not from an object's attribute."""
        function = self.updates.scope.function
        return function is None or function.owner is None

    def _known(self, update: Update) -> object:
        """What a step has to know when it is traced, and whether its modules are trees."""
        inputs = self.writer.inputs(update)
        modules = [one.places for one in inputs.values() if one.kind == "module" and one.text != "rngs"]
        static = {text for text, one in inputs.items() if one.kind not in ("array", "module")}
        return static, Allocations(self.updates.objects).are_trees(modules, "")

    def _is_done_in(self, update: Update, index: int) -> bool:
        """Whether the step alone computes something of an item; in front of it slices stay."""
        inputs = self.writer.inputs(update).values()
        given = {n for one in inputs if one.given for place in one.places for n in symbols.walk(place)}
        node, flow = update.items[index].node, self.updates.flow
        if flow.writes(node) & set(update.live):
            return False  # it would be handed out again
        nodes = symbols.walk(node)
        return any(self.code.is_operation(n) for n in nodes if n not in given)

    # --- behind the step ------------------------------------------------------------------------------------------

    def _with_results(self, update: Update, near: Collection[int]) -> Update:
        items, made, flow = update.items, update.slice, self.updates.flow
        moved = sorted({*made.moved, *made.split})
        given = set[str]().union(*(flow.writes(items[i].node) for i in moved))
        losses = (flow.reads(loss) for _, loss in update.losses)
        taken = given.union(*(flow.reads(items[i].node) for i in moved), *losses)
        more: list[int] = []
        measures: list[Measure] = []
        for index in range(moved[0] + 1, len(items)):
            node = items[index].node
            if (
                index in moved
                or index not in near
                or not self._may_join(update, index)
                or not isinstance(node, _SIMPLE)
            ):
                continue
            changed = self._changed(update, index, {*moved, *more})
            known, results = taken - changed, given - changed
            value = self.code.assigns(node)
            if value is not None and self._is_of(value, known, results) and self._is_new(update, index, taken, more):
                more.append(index)
                given |= flow.writes(node)
                taken |= flow.writes(node)
                continue
            is_of = partial(self._is_of, known=known, results=results)
            for value in outermost(node, is_of, self.ctx.plan.expression_handlers):
                measures.append(Measure(self.ctx.names.fresh(measured_name(node, value)), value, node))
        delayed = [i for i in made.delayed if i not in more]
        made = replace(made, moved=sorted([*made.moved, *more]), delayed=delayed)
        return replace(update, slice=made, measures=measures)

    def _may_join(self, update: Update, index: int) -> bool:
        item = update.items[index]
        return _is_plain(item) and item.condition is None and not item.inside

    def _changed(self, update: Update, index: int, moved: Collection[int]) -> set[str]:
        """The variables that don't have the value at an item that they have at the end of the step."""
        items, call = update.items, update.slice.call
        out: set[str] = set()
        for other in range(min(moved), len(items)):
            changes = other > index if other in moved else other < max(index, call) and other != index
            if changes and _is_plain(items[other]):
                out |= self.code.changes(items[other].node)
        return out

    def _is_new(self, update: Update, index: int, used: Collection[str], more: Collection[int]) -> bool:
        """Whether what an item gives a value is new to the step, and nothing in front of the item reads it."""
        flow, items = self.updates.flow, update.items
        names = flow.writes(items[index].node) - {"_"}
        before = range(min(update.slice.moved) + 1, index)
        staying = [items[i].node for i in before if i not in more and i not in update.slice.moved]
        return not names & set(used) and not any(names & (flow.reads(n) | flow.writes(n)) for n in staying)

    def _is_of(self, node: ast.expr, known: Collection[str], results: Collection[str]) -> bool:
        """Whether an expression is computed of the results and of known arrays alone, and draws nothing."""
        flow = self.updates.flow
        read = [*self.code.variables(node)]
        arrays = all(flow.variable(n) in known and is_array_tree(self.ctx.fact(n)) for n in read)
        return (
            arrays
            and any(flow.variable(n) in results for n in read)
            and self.code.is_computed(node)
            and not self.code.draws(node)
        )


def _is_plain(item: Item) -> bool:
    return item.step_call is None
