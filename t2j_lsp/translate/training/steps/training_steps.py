"""Finds the training steps of a file and puts handlers on them; loops that aren't surely understood are left whole."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from typing import cast

from t2j_lsp import symbols
from t2j_lsp.contract import MARK
from t2j_lsp.symbols import ancestors, statement_of_the_file, with_ancestors
from t2j_lsp.translate.expressions.backward import differentiates
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.inference.host_random import taken_out
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.training.program.allocations import Allocations
from t2j_lsp.translate.training.program.flow import DataFlow
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.slice import SWAPPED
from t2j_lsp.translate.training.program.step_calls import Phase, Reader, Refused, flatten, phases

from .accumulated import ELSEWHERE, AccumulatedTraining, AddedGradients, loops, own_expressions
from .around_steps import AroundSteps
from .closures import ClosureGradients, Closures
from .composed_step import unused
from .effects import CallEffects
from .even_reach import run_by
from .jittable import Jittable
from .left_gradients import LEAVES, left_by
from .lifted import Lifting
from .lost_gradients import LostGradients
from .region import AUTOCAST, Region, insert_function
from .shared_draws import check_shared
from .step import StepWriter
from .stored_gradients import StoredGradients
from .unreached import PlannedStep, Unreached
from .unread_gradients import plan_unread_gradients
from .update import Update
from .updates import Updates

LEFT = "This training code isn't converted: "
NOT_COMPILED = "The train step isn't compiled, as compiled code would do it once: "
WHOLE = "The train step isn't compiled, and holds all that the loss is made of, which acts outside of JAX: "


class Steps:
    """Plans the updates of every scope of a file."""

    def __init__(
        self, context: Context, objects: Objects, left: str = "", planned: Collection[FunctionInfo] = ()
    ) -> None:
        self.ctx = context
        self.planned = planned
        """Functions whose gradients are planned already."""
        self.objects = objects
        self.left = left
        """Why no update of the file converts, where parameters are frozen or lost in a way that none would respect."""
        self.reader = Reader(context.inference, context.plan.switches)
        self.lifting = Lifting(context, objects, self.insert)
        self.jittable = Jittable(context.inference, self.reader, self.lifting.lifted, self.lifting.reasons)
        self.lost = LostGradients(context.inference)
        self.closures = Closures(context)
        self.refused: list[ast.stmt] = []
        """Loops and functions that are left as they are."""
        self.marked: set[ast.AST] = set()
        """Those of them that an earlier conversion left."""
        self.converted = False
        self.uncompiled: set[ast.AST] = set()
        """What stands in steps that aren't compiled."""
        self.used: set[ast.stmt] = set()
        self.fresh: dict[ast.stmt, set[str]] = {}
        """Statements around updates, and the optimizers and modules whose gradients these compute fresh each time."""
        """Statements that an update has taken up."""
        self.measured: set[ast.expr] = set()
        """What is computed in a step of statements that stay."""
        self.unreached = Unreached(context, objects)
        self.hosts: set[ast.AST | None] = set()
        """Functions that make updates; None for the module level."""
        self._inserted: dict[ast.AST, int] = {}

    def plan(self) -> None:
        self._leave_marked()
        if not self.marked and plan_unread_gradients(self.ctx):
            return
        if not self.left:
            self.lifting.plan()
        for info in [None, *self.ctx.inference.functions.values()]:
            if info is None or not info.external and info not in self.planned:
                _ScopePlan(self, info).plan()
        self.unreached.plan()

    def _leave_marked(self) -> None:
        """Leave what an earlier conversion left, for the reason that it gave."""
        source = self.ctx.source
        if LEFT not in source.text:
            return
        for node in source.nodes:
            if not isinstance(node, ast.stmt):
                continue
            line = min(n.lineno for n in (node, *getattr(node, "decorator_list", ()))) - 1
            while line > 0 and (text := source.line_text(line).strip()).startswith(MARK):
                if LEFT in text:
                    self.leave(node, text.partition(LEFT)[2], planned=False)
                    self.marked.add(node)
                line -= 1

    def leave(self, node: ast.stmt, reason: str, planned: bool = True) -> None:
        """Leave a loop or function as it is, and say why. ``planned``: as of `Lifting.leave`."""
        if node in self.refused or self.marked and self._is_marked(node):
            return
        self.refused.append(node)
        self.lifting.leave(node, reason, planned)
        if isinstance(node, ast.FunctionDef):
            self.ctx.plan.untouched.add(node)

        def handler(statements: StatementRewriter) -> None:
            self.ctx.report.gap(node, "training loop", "training-loop", f"{LEFT}{reason}")

        self.ctx.plan.on_statement(node, handler)

    def _is_marked(self, node: ast.stmt) -> bool:
        """Whether an earlier conversion left the statement, what it stands in, or what stands in it."""
        around = ancestors(node, self.ctx.source.parents)
        return any(one in self.marked for one in (*symbols.walk(node), *around))

    def insert(self, place: ast.AST, lines: list[str], behind: ast.stmt | None = None) -> None:
        """Put a compiled function in front of the top-level statement around ``place``, or ``behind`` another one."""
        node = behind or statement_of_the_file(place, self.ctx.source.parents)
        count = self._inserted.get(node, 0)
        self._inserted[node] = count + 1
        insert_function(self.ctx.edits, place, lines, count, behind)


class _ScopePlan:
    """Plans one scope."""

    def __init__(self, steps: Steps, info: FunctionInfo | None) -> None:
        self.steps = steps
        self.ctx = steps.ctx
        self.info = info
        self.scope = VariableScope(info)
        self.body: Sequence[ast.stmt] = info.node.body if info is not None else self.ctx.source.tree.body
        self.added = AddedGradients(self.ctx, Allocations(steps.objects), self.body, steps.reader, steps.used)
        effects = CallEffects(self.ctx.inference, self._self_name())
        self.flow = DataFlow(self.ctx.source.symbols, self._self_name(), steps.lifting.passed, effects=effects)
        self.writer = StepWriter(self.ctx, steps.objects, self.scope, self.flow)

    def _self_name(self) -> str | None:
        """The object whose attributes are variables of their own: ``self`` in a class that isn't a module."""
        return self.steps.objects.holder(self.scope)

    def plan(self) -> None:
        if not self._computes_gradients():
            return
        try:
            if self.steps.left:
                raise Refused(self.steps.left)
            trainings = self._trainings()
            self._check_left(trainings)
            self._accumulated(trainings)
            for one in trainings:
                if one.updates:
                    self._handle(one)
        except Refused as problem:
            self._leave(str(problem))

    def _computes_gradients(self) -> bool:
        for block in symbols.blocks(self.body):
            for node in block:
                for inner in own_expressions(node):
                    if differentiates(self.ctx.inference, inner):
                        return True
        return False

    def _leave(self, reason: str) -> None:
        """Leave every loop of the scope that computes gradients, or the function if none does."""
        roots = [n for n in loops(self.body) if any(differentiates(self.ctx.inference, i) for i in symbols.walk(n))]
        if not roots and self.info is not None:
            roots = [self._loop_around(self.info.node)]
        elif not roots:
            roots = [n for n in self.body if any(differentiates(self.ctx.inference, i) for i in symbols.walk(n))]
        for root in roots:
            if not isinstance(root, ast.FunctionDef | ast.ClassDef) or root is (self.info.node if self.info else None):
                self.steps.leave(root, reason)

    def _loop_around(self, node: ast.stmt) -> ast.stmt:
        """The outermost loop that a function is defined in, else the function."""
        around = ancestors(node, self.ctx.source.parents)
        return [node, *(at for at in around if isinstance(at, ast.For | ast.While | ast.AsyncFor))][-1]

    # --- finding --------------------------------------------------------------------------------------------------

    def _trainings(self) -> list[AccumulatedTraining]:
        """The blocks with backward passes, with the updates that are complete in them. Raises Refused."""
        self.updates = Updates(
            self.ctx,
            self.steps.objects,
            self.scope,
            self.flow,
            self.steps.reader,
            self.steps.jittable,
            self.steps.lost,
        )
        self.updates.independent = self.steps.lifting.reason(self.scope) or self.updates.independent
        out: list[AccumulatedTraining] = []
        seen: set[ast.stmt] = set()
        for block in symbols.blocks(self.body):
            if any(s in seen for s in block):
                continue
            items = flatten(block, self.steps.reader)
            if not any(i.step_call is not None and i.step_call.kind == "backward" for i in items):
                continue
            seen |= {i.node for i in items} | {w for i in items for w in i.inside}
            seen |= {s for i in items for s in (i.condition.body if i.condition is not None else ())}
            out.append(AccumulatedTraining(block, items))
        if not out:
            raise Refused("A backward pass stands inside an expression.")
        return out

    def _check_left(self, trainings: list[AccumulatedTraining]) -> None:
        """Raises Refused if a function that the scope calls leaves gradients, which a step of the scope would take."""
        calls = [item.step_call for one in trainings for item in one.items if item.step_call is not None]
        if not any(call.kind == "step" for call in calls):
            return
        zeros = {call.node.lineno for call in calls if call.kind == "zero"}
        if (name := left_by(self.ctx.inference, self.body, zeros)) is not None:
            raise Refused(LEAVES.format(name))

    def _accumulated(self, trainings: list[AccumulatedTraining]) -> None:
        """Make the updates of every block: direct ones, and those that add gradients up. Raises Refused."""
        waiting: list[tuple[AccumulatedTraining, Phase, str]] = []
        for one in trainings:
            parts = phases(one.items)
            earlier = 0
            for phase in parts:
                if not phase.steps:
                    waiting.append((one, phase, ELSEWHERE))
                    continue
                try:
                    update = self.updates.direct(one.items, phase, earlier, parts)
                except Refused as problem:
                    if len(parts) > 1:
                        raise
                    waiting.append((one, phase, str(problem)))
                    continue
                one.updates.append(update)
                earlier = update.last + 1
        if not waiting:
            return
        if len(waiting) > 1 or any(one.updates for one in trainings):
            reason = waiting[0][2]
            try:
                if not self._stored_apart(waiting):
                    raise Refused(reason)
            except Refused as problem:
                raise Refused(str(problem) if reason == ELSEWHERE else reason) from problem
            return
        one, phase, reason = waiting[0]
        if calls := self.steps.closures.calls(self.info):
            ClosureGradients(self.ctx, self.steps.objects, self.scope, self.updates, calls).plan(one, phase)
            return
        stored = self._stored(self.body)
        if self.added.reads_gradients() or stored.calls_updates():
            stored.plan(one, phase)
            return
        try:
            self.added.add_up(one, self.updates, phase, reason)
        except Refused as problem:
            reason = waiting[0][2]
            raise Refused(str(problem) if reason == ELSEWHERE else reason) from problem

    def _stored(self, body: Sequence[ast.stmt]) -> StoredGradients:
        return StoredGradients(self.ctx, self.steps.objects, self.scope, self.updates, body)

    def _stored_apart(self, waiting: Sequence[tuple[AccumulatedTraining, Phase, str]]) -> bool:
        """Training by hand in several loops one behind the other, none of which reads the gradients of another."""
        parents, last = self.ctx.source.parents, [one.block[-1] for one, _, _ in waiting]
        outer = [next(s for s in with_ancestors(node, parents) if s in self.body) for node in last]
        if len(set(outer)) < len(outer) or not set(outer).isdisjoint(last) or self.steps.closures.calls(self.info):
            return False
        others = [s for s in self.body if s not in outer]
        allocations, reader = Allocations(self.steps.objects), self.steps.reader
        if AddedGradients(self.ctx, allocations, others, reader, self.steps.used).reads_gradients():
            return False
        for (one, phase, _), statement in zip(waiting, outer, strict=True):
            self._stored([cast("ast.stmt", statement)]).plan(one, phase)
        return True

    # --- handling -------------------------------------------------------------------------------------------------

    def _handle(self, one: AccumulatedTraining) -> None:
        """Put handlers on the statements that the updates of a block replace."""
        one.updates = AroundSteps(self.ctx, self.updates, self.writer).taken_up(one.updates)
        region = Region(self.ctx, Allocations(self.steps.objects), one.block, one.items, one.updates)
        changed = region.changed()
        if changed[0] in self.ctx.plan.left:
            raise Refused(self.ctx.plan.left[changed[0]])
        if not self.steps.used.isdisjoint(changed):  # What has a place of its own is written nowhere else.
            raise Refused(SWAPPED)
        for update in one.updates:
            self.writer.check(update)
            update.arrays = self.writer.adds_arrays(update)
        self._name(one)
        self.ctx.plan.train_steps |= region.moved()
        for update in one.updates:
            code = [update.items[i].node for i in update.slice.moved] if update.once else []
            self.ctx.plan.traced.update(n for node in code for n in taken_out(self.ctx.inference, node))
            run = [f.node for f in run_by(self.ctx.inference, code) if self.steps.jittable.function_problem(f)]
            self.steps.uncompiled.update(n for node in (*code, *run) for n in symbols.walk(node))
        check_shared(self.ctx.inference, one.updates)
        self.steps.unreached.steps += [PlannedStep(update, self.scope, changed[0]) for update in one.updates]

        def write(statements: StatementRewriter) -> None:
            for item in one.items:
                if item.step_call is not None and item.step_call.kind == "switch":
                    self.ctx.report.note(item.node, "Tensor.requires_grad", "note", self.ctx.plan.switches[item.node])
            if changed[0] in self.ctx.plan.left:
                return
            steps = []
            for update in one.updates:
                self._notes(update)
                try:
                    steps.append(self.writer.write(update, statements))
                except Refused as problem:
                    self.ctx.plan.left[changed[0]] = str(problem)  # the file is written again, without this step
                    return
            for step in steps:
                at_once = ["", "", step.bound] if step.bound and self.info is None else []
                self.steps.insert(one.block[0], [*step.function, *at_once], self._in_front(one.block, changed[0]))
                if step.before is not None and self.info is not None:
                    self.ctx.edits.insert_before(step.before, [step.bound])
            region.write(statements, steps)
            self.ctx.report.count_converted()

        for statement in changed:
            self.ctx.plan.on_statement(statement, _written)
        self.ctx.plan.on_statement(changed[0], write)
        self.steps.converted = True
        self.steps.hosts.add(self.scope.node)
        self.steps.measured.update(measure.value for update in one.updates for measure in update.measures)
        self.steps.used |= set(changed) | {one.items[i].node for i in region.taken}
        if all(update.mode in ("fused", "apart") for update in one.updates):
            updated = {text for u in one.updates for o in u.optimized for text in (o.text, *o.modules)}
            self.steps.fresh |= dict.fromkeys(changed, updated)

    def _in_front(self, block: Sequence[ast.stmt], first: ast.stmt) -> ast.stmt | None:
        """The statement of the module level in front of the first that an update replaces; None inside others."""
        at = list(block).index(first)
        return block[at - 1] if block is self.ctx.source.tree.body and at else None

    def _name(self, one: AccumulatedTraining) -> None:
        for update in one.updates:
            hints = ["train_step", "update_step"]
            if update.mode == "accumulated":
                hints = ["accumulate_gradients", "add_gradients"]
            elif update.mode in ("stored", "apart"):
                hints = ["gradients", "loss_and_gradients", "compute_gradients"]
            elif len(one.updates) > 1:
                module = update.optimized[0].modules[0].rpartition(".")[2]
                hints = [f"{module}_step", f"update_{module}"]
            if self.info is not None and not update.grads and not self.info.name.endswith("step"):
                hints.insert(1, f"{self.info.name}_step")
            update.name = unused(self.ctx.names, *hints)

    def _notes(self, update: Update) -> None:
        for index in range(update.first, update.last + 1):
            for outer in update.items[index].inside:
                for entry in outer.items:
                    if self.steps.reader.is_autocast(entry.context_expr) or isinstance(entry.context_expr, ast.Name):
                        self.ctx.report.note(entry.context_expr, "torch.autocast", "note", AUTOCAST)
        if update.once:
            node = update.items[update.losses[0][0]].node
            self.ctx.report.note(
                node, "training loop", "note", f"{WHOLE if update.whole else NOT_COMPILED}{update.once}."
            )
        for one in update.optimized:
            if not one.sure:
                self.ctx.report.note(
                    update.items[update.losses[0][0]].node,
                    "torch.optim.Optimizer",
                    "probable",
                    f"{one.text} is taken to update {one.modules[0]}, the module that the loss is computed with",
                )


def _written(statements: StatementRewriter) -> None:
    """The statement's lines are written already."""
