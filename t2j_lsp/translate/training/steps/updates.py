"""Makes the updates of a scope: what of its statements moves into each train step, and what that gives back."""

from __future__ import annotations

import ast
import contextlib
import itertools
from collections.abc import Collection, Mapping, Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.training.data.batch_bindings import ANOTHER, named_by, takes_batch
from t2j_lsp.translate.training.data.masks import mask_without_positions, selects
from t2j_lsp.translate.training.program.flow import DataFlow, Liveness
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.once import Acting, Drawn, Episode, KnownPrint, Once
from t2j_lsp.translate.training.program.slice import UpdateSlice, UpdateSlicer
from t2j_lsp.translate.training.program.step_calls import Item, Phase, Reader, Refused, StepCall, limits

from .between import BETWEEN, concerns, names_training, reaches_training, where_limits_are_made
from .even_reach import EvenReach
from .host_values import given_before
from .jittable import Jittable, worst
from .left_elsewhere import LeftElsewhere
from .lost_gradients import LostGradients
from .resets import resets_state
from .skipped import SKIPPED, check_unskipped, may_skip
from .teachers import Teachers
from .unreached import takes_plain_steps
from .update import FLAGGED, Mode, Optimized, Update
from .updated_modules import UpdatedModules

CHANGED_BY_LOSS = "The gradients are changed by what the loss is computed with."
SEVERAL_BARE = "It updates bare tensors along with others, under a condition, or with clipped gradients."


class Updates:
    """Makes the updates of one scope."""

    def __init__(
        self,
        context: Context,
        objects: Objects,
        scope: VariableScope,
        flow: DataFlow,
        reader: Reader,
        jittable: Jittable,
        lost: LostGradients,
    ) -> None:
        self.ctx = context
        self.objects = objects
        self.scope = scope
        self.flow = flow
        self.updated = UpdatedModules(context, objects, scope, flow)
        self.elsewhere = LeftElsewhere(context, objects, scope, flow, reader)
        self.reader = reader
        self.teachers = Teachers(context.inference, reader, flow)
        self.jittable = jittable
        self.lost = lost
        self.independent = "The loss doesn't depend on the modules that the optimizer updates."
        self.body = scope.function.node.body if scope.function is not None else context.source.tree.body
        self.liveness = Liveness(flow, self.body, read_elsewhere(self.ctx, self.scope, self.flow))

    # --- one phase ------------------------------------------------------------------------------------------------

    def direct(self, items: Sequence[Item], phase: Phase, earlier: int, others: Sequence[Phase]) -> Update:
        """An update whose backward pass and step stand in one block. ``earlier`` is the item behind the last update.

        What has no gradient moves into the step with the rest, unless an earlier update needs it too, or it acts
        outside of JAX: a rollout. Raises Refused.
        """
        resets = {i: set[str]() for i, x in enumerate(items) if resets_state(self.ctx.inference, x.node)}
        try:
            return self._moving(items, phase, earlier, others, resets)
        except Refused:
            staying = self.teachers.among(items[: phase.backs[-1]], functions=True)
            if staying.keys() <= self.teachers.among(items[:earlier]).keys():
                raise
            with contextlib.suppress(Refused):
                update = self._direct(items, phase, earlier, others, resets | staying)
                if all(i < update.first or i in update.slice.moved for i in staying):
                    return update
            raise

    def _moving(
        self, items: Sequence[Item], phase: Phase, earlier: int, others: Sequence[Phase], resets: dict[int, set[str]]
    ) -> Update:
        """An update with what has no gradient moved into the step, as far as that may be. Raises Refused."""
        without = self.teachers.among(items[:earlier])
        quiet = (i for i, x in enumerate(items) if self.reader.has_no_gradient(x.node))
        if acting := {i: set[str]() for i in quiet if self.jittable.problem(items[i].node) is not None}:
            with contextlib.suppress(Refused):
                return self._direct(items, phase, earlier, others, resets | without | acting)
        with contextlib.suppress(Refused) if without else contextlib.nullcontext():
            update = self._direct(items, phase, earlier, others, resets)
            if not any(i in update.slice.moved for i in without):
                return update
        return self._direct(items, phase, earlier, others, resets | without)

    def _direct(
        self,
        items: Sequence[Item],
        phase: Phase,
        earlier: int,
        others: Sequence[Phase],
        apart: Mapping[int, Collection[str]],
    ) -> Update:
        slicer = self.updated.slicer(items, apart)
        losses = self.losses(items, phase)
        optimized = self.updated.of_steps(items, phase.steps, slicer, losses)
        conditions = {items[i].condition for i in (*phase.backs, *phase.steps)}
        if len(conditions) > 1:
            raise Refused("The backward pass and the step stand under different conditions.")
        condition = conditions.pop()
        call = (
            phase.backs[-1] if condition is None else next(i for i, x in enumerate(items) if x.condition is condition)
        )
        call = where_limits_are_made(self.flow, items, phase, call)
        self.updated.check_zeroed(items, phase, optimized, others)
        self.elsewhere.check(items, phase, optimized, self.updated)
        path = self._path(slicer, losses, optimized)
        whole = condition is None and len(others) == 1 and self._acts(items, path, losses)
        if whole:
            made = UpdateSlice(self._episode(items, path, call).moved(earlier), call=call)
        else:
            made = self._closed(slicer, path, call, earlier) if path else UpdateSlice(call=call)
        last = max(i for i in range(len(items)) if i in phase.steps or self._trailing(items, i, phase, optimized))
        trained = self.updated.variables(optimized).union(*({o.text, *o.modules} for o in optimized))
        waiting = [items[index].node for index in made.delayed]
        minds = self._minds_update(items, call, max(phase.steps), optimized)
        minds = minds or any(concerns(self.ctx.inference, self.flow, node, trained) for node in waiting)
        zeros = [
            i for i, x in enumerate(items) if x.step_call is not None and x.step_call.kind == "zero" and earlier <= i
        ]
        mine = [i for i in zeros if i < phase.backs[0] and self.updated.zeroes(items[i].step_call, optimized)]
        first = min([call, *(i for i in made.moved if i >= earlier), *made.split, *made.delayed, *mine])
        update = Update(
            mode="fused" if condition is None else "conditional",
            items=items,
            slice=made,
            losses=losses,
            optimized=optimized,
            clips=list(self._clips(items, phase)),
            first=first,
            last=last,
            condition=condition,
            whole=whole,
        )
        if minds or may_skip(items, made, max(phase.steps)):
            self._set_apart(update, max(phase.steps), BETWEEN if minds else SKIPPED)
        bare = any(one.state for one in optimized)
        if bare and (len(optimized) > 1 or update.mode != "fused" or update.clips):
            raise Refused(SEVERAL_BARE)
        self.check_trace(update)
        update.live = self.live(update)
        return update

    def _set_apart(self, update: Update, step: int, reason: str) -> None:
        """The step gives the gradients, and the update stays in its place. Raises Refused."""
        modules = [module for one in update.optimized for module in one.modules]
        other = any(one.state or one.flagged for one in update.optimized)
        if other or update.condition is not None or len(modules) > 1 or self.updated.is_part(modules[0]):
            raise Refused(reason)
        update.mode, update.grads, update.step = "apart", self.ctx.names.fresh("grads"), step

    def accumulated(
        self, items: Sequence[Item], phase: Phase, optimizer: ast.expr, grads: str, cleared: bool
    ) -> Update:
        """A backward pass whose gradients are used elsewhere in the scope, and added up unless ``cleared``.

        Raises Refused.
        """
        one = self.updated.optimized(optimizer, self.updated.slicer(items), self.losses(items, phase))
        if len(one.modules) != 1:
            raise Refused("Gradients of several modules add up over several backward passes.")
        return self._gradients("stored" if cleared else "accumulated", items, phase, one, grads)

    def stored(self, items: Sequence[Item], phase: Phase, trained: Optimized, grads: str) -> Update:
        """A backward pass whose gradients the program reads itself, from the variables ``grads``. Raises Refused."""
        return self._gradients("stored", items, phase, trained, grads)

    def _gradients(self, mode: Mode, items: Sequence[Item], phase: Phase, one: Optimized, grads: str) -> Update:
        """A backward pass without a step behind it. Raises Refused."""
        slicer = self.updated.slicer(items)
        for leaf in one.modules if not one.text else ():
            given = [i for i in range(phase.backs[0]) if slicer.binds(i, leaf)]
            if given:
                slicer.bound.setdefault(given[-1], set()).add(leaf)
        losses = self.losses(items, phase)
        if any(items[i].condition is not None for i in phase.backs):
            raise Refused("The backward pass stands under a condition.")
        if one.flagged:
            raise Refused(FLAGGED)
        path = self._path(slicer, losses, [one])
        call = phase.backs[-1]
        made = slicer.close(path, call) if path else UpdateSlice(call=call)
        if mode == "accumulated":
            check_unskipped(items, made)
        first = min([call, *made.moved, *made.split, *made.delayed])
        update = Update(mode, items, made, losses, [one], [], first, call, grads=grads)
        self.check_trace(update)
        update.live = self.live(update)
        return update

    def _trailing(self, items: Sequence[Item], index: int, phase: Phase, optimized: Sequence[Optimized]) -> bool:
        """Whether an item is a scaler's update or the zeroing of these gradients, right behind the step."""
        last = max(phase.steps)
        if index <= last:
            return False
        return all(
            x.step_call is not None
            and (x.step_call.kind == "rescale" or self.updated.zeroes(x.step_call, optimized))
            and x.condition is items[last].condition
            for x in items[last + 1 : index + 1]
        )

    def _closed(self, slicer: UpdateSlicer, path: list[int], call: int, earlier: int) -> UpdateSlice:
        """The slice of a path, with the forward passes without gradient that it needs, in it or right above it.

        They are compiled with the step, and draw in their turn: ``with torch.no_grad(): target = teacher(x)``. Raises
        Refused.
        """
        made = slicer.close(path, call, earlier)
        first = max(min(made.moved, default=call), earlier)

        def is_teacher(index: int) -> bool:
            return self._is_teacher(slicer, index, made)

        above = [*itertools.takewhile(is_teacher, range(first - 1, earlier - 1, -1))]
        teachers = [*filter(is_teacher, range(first, call))]
        for chosen in ([*above, *teachers], teachers):
            try:
                return slicer.close(sorted([*path, *chosen]), call, earlier) if chosen else made
            except Refused:
                continue
        return made

    def _acts(self, items: Sequence[Item], path: Sequence[int], losses: Sequence[tuple[int, ast.expr]]) -> bool:
        """Whether what a loss is computed with acts outside of JAX, and does nothing else that a step can't."""
        problems = map(self.jittable.problem, (*(items[i].node for i in path), *(loss for _, loss in losses)))
        return isinstance(worst(problems), Acting)

    def _episode(self, items: Sequence[Item], path: Sequence[int], call: int) -> Episode:
        return Episode(self.ctx.inference, self.flow, [*items], [*path], call)

    def _is_teacher(self, slicer: UpdateSlicer, index: int, made: UpdateSlice) -> bool:
        node = slicer.items[index].node
        if index in (*made.moved, *made.split, *made.delayed) or not self.reader.has_no_gradient(node):
            return False
        needed = any(slicer.writes(index) & slicer.reads(later) for later in made.moved if later > index)
        return needed and self.reader.calls_module(node) and self.jittable.problem(node) is None

    def _path(
        self, slicer: UpdateSlicer, losses: list[tuple[int, ast.expr]], optimized: Sequence[Optimized]
    ) -> list[int]:
        """The items between the updated modules and the losses. Raises Refused."""
        variables = self.updated.variables(optimized)
        path = slicer.path(losses, variables)
        if not path and not any(self.flow.reads(loss) & variables for _, loss in losses):
            raise Refused(self.independent)
        return path

    def losses(self, items: Sequence[Item], phase: Phase) -> list[tuple[int, ast.expr]]:
        out = []
        for index in phase.backs:
            step_call = items[index].step_call
            assert step_call is not None
            out.append((index, step_call.subject))
        return out

    def _clips(self, items: Sequence[Item], phase: Phase) -> list[StepCall]:
        calls = [item.step_call for item in items[phase.backs[-1] : max(phase.steps)]]
        return [call for call in calls if call is not None and call.kind == "clip"]

    # --- checks ---------------------------------------------------------------------------------------------------

    def _minds_update(self, items: Sequence[Item], call: int, last: int, optimized: Sequence[Optimized]) -> bool:
        """Whether something between the call and the step may change what the step does, by functions that it calls.

        Raises Refused if it uses the module or the optimizer itself.
        """
        mine = self.updated.variables(optimized) | {o.text for o in optimized}
        roots = {self.flow.root(ast.parse(o.text, mode="eval").body) for o in optimized if o.text}
        names = {module.rpartition(".")[2] for one in optimized for module in one.modules}
        minds = False
        for index in range(call, last):
            item = items[index]
            if item.step_call is not None or item.condition is not None and item.condition is not items[last].condition:
                continue
            reads = self.flow.uses(item.node).reads
            if reads & mine or names_training(self.ctx.inference, item.node):
                raise Refused(BETWEEN)
            minds = minds or bool(reads & roots) or reaches_training(self.ctx.inference, item.node, names)
        return minds

    def check_trace(self, update: Update) -> None:
        """Raises Refused if moved code can't run under jit."""
        moved = [update.items[index].node for index in update.slice.moved]
        own = self.updated.variables(update.optimized).union(*map(self.flow.writes, moved))
        measured = [one.value for one in update.measures]
        code = [*moved, *(loss for _, loss in update.losses), *update.slice.split.values(), *measured]
        modules = [module for one in update.optimized for module in one.modules]
        sure = all(one.sure for one in update.optimized)
        if lost := self.lost.reason(code, modules if sure else None, self._exposed(update), update.whole):
            raise Refused(lost)
        handlers = self.ctx.plan.expression_handlers
        again = [n for n in moved if takes_batch(n, handlers) and self.flow.reads(n).isdisjoint(own)]
        if names := dict.fromkeys(name for one in again for name in named_by(one)):
            raise Refused(ANOTHER.format(names=", ".join(names)))
        before = given_before(self.ctx.inference, self.flow, code, own)
        for node in code:
            mask = mask_without_positions(self.ctx.inference, node, code, lambda one: bool(self.flow.reads(one) & own))
            problem = worst((self.jittable.problem(node, before), Once(selects(mask)) if mask is not None else None))
            if isinstance(problem, KnownPrint) and update.mode != "stored":
                continue
            if isinstance(problem, Once) and self._runs_uncompiled(update, problem, code, own):
                update.once = worst((update.once or None, problem)) or problem
            elif problem is not None:
                raise Refused(f"The loss can't be computed under jit: {problem}.")
        late = [update.items[index].node for index in update.slice.delayed]
        for clip in update.clips:
            self.updated.clip_target(clip, update.optimized, update.mode == "fused")
            if any(self.flow.reads(given) & self.flow.writes(s) for given in limits(clip) for s in [*moved, *late]):
                raise Refused(CHANGED_BY_LOSS)

    def _exposed(self, update: Update) -> set[str]:
        """The variables that an update reads and doesn't give a value first."""
        made, items = update.slice, update.items
        exposed, defined = set[str](), set[str]()
        for index in sorted([*made.moved, *made.split]):
            exposed |= self.flow.exposed(made.split.get(index) or items[index].node) - defined
            defined |= self.flow.writes(items[index].node)
        return exposed.union(*(self.flow.reads(loss) - defined for _, loss in update.losses))

    def _runs_uncompiled(
        self, update: Update, problem: Once, code: Collection[ast.AST], written: Collection[str]
    ) -> bool:
        """Whether an update is right if it is traced anew at each call.

        A parameter that the step did not reach stays as it is in PyTorch; optax moves it on by what it remembers.
        """
        if update.mode != "fused" or isinstance(problem, Acting) and not update.whole:
            return False
        if not isinstance(problem, Drawn):
            return True
        made = [self.objects.constructors(ast.parse(o.text, mode="eval").body, self.scope) for o in update.optimized]
        bare = all(calls is not None and all(takes_plain_steps(self.ctx, one) for one in calls) for calls in made)
        return bare or EvenReach(self.ctx.inference, code, written).holds()

    # --- results --------------------------------------------------------------------------------------------------

    def live(self, update: Update) -> list[str]:
        """Variables that the moved code writes and later code reads, in the order they are written."""
        items, made, last = update.items, update.slice, update.losses[-1][0]
        flow, liveness = self.flow, self.liveness
        if gone := [one.value for one in update.measures] + [items[i].node for i in made.moved if i > last]:
            flow = self.flow.without(gone)
            liveness = Liveness(flow, self.body, read_elsewhere(self.ctx, self.scope, self.flow))
        wanted = set(liveness.after.get(items[last].node, set()))
        if update.condition is not None:
            wanted |= liveness.after.get(update.condition, set())
        kept = {(late, name) for (_, name), waiting in made.saved.items() for late in waiting}
        for index in (*made.delayed, *made.split):
            wanted |= {name for name in flow.reads(items[index].node) if (index, name) not in kept}
        if update.whole:
            episode = self._episode(items, made.moved, made.call)
            bound = episode.bound(made.moved)
            episode.check_added(made.moved, wanted - bound)
            wanted &= bound
        for key in [key for key in made.saved if key not in update.saved]:
            update.saved[key] = self.ctx.names.fresh(f"raw_{key[1]}")
        out: list[str] = []
        for index in sorted([*made.moved, *made.split]):
            if index in made.shared:
                continue
            for name in self._in_order(items[index].node):
                if (name in wanted or index in made.split) and name not in out:
                    out.append(name)
        return [*out, *update.saved.values(), *(one.name for one in update.measures)]

    def _in_order(self, node: ast.stmt) -> list[str]:
        """Variables a statement writes, in the order they stand in."""
        names: list[str] = []
        for inner in symbols.walk(node):
            name = self.flow.variable(inner)
            if name is not None and name in self.flow.writes(node) and name not in names:
                names.append(name)
        return names


def read_elsewhere(ctx: Context, scope: VariableScope, flow: DataFlow) -> set[str]:
    """Variables of a scope that other functions read: those of the module level, and attributes of ``self``."""
    if scope.function is not None:
        names = {n for s in symbols.walk(scope.function.node) if isinstance(s, ast.Global) for n in s.names}
        return names | {v for v in flow.writes(scope.function.node) if "." in v}
    return set[str]().union(*(flow.reads(function) for function in ctx.inference.functions))
