"""One update of a training loop as a plan: its losses, what it optimizes, what moves into the train step."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.facts import Qual, is_module
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.optimizer_plan import Group

from .between import BETWEEN, names_training, reaches_training
from .called_modules import called_modules
from .cut_off import carrying_gradients
from .flow import DataFlow, Liveness
from .groups import apart, updated
from .host_values import given_before
from .jittable import Jittable, worst
from .lost_gradients import LostGradients
from .objects import Objects, VariableScope, targets
from .once import Acting, Drawn, Episode, Once
from .parts_of_one import LEFT_BY_OTHERS, shares_its_modules
from .resets import resets_state
from .skipped import KEPT, SKIPPED, check_unskipped, may_jump, may_skip
from .slice import UpdateSlice, UpdateSlicer
from .step_calls import Item, Phase, Reader, Refused, StepCall, clip_kind

Mode = Literal["fused", "conditional", "accumulated", "stored", "apart"]
"""``stored``: the step only gives the gradients, which other code of the program reads. ``apart``: it gives them, and
the update is made behind code that may skip it.
"""
NOT_ZEROED = "The gradients aren't zeroed in this function, so they add up from somewhere else."
ITEM = "It updates an item of a list of modules, whose gradients have no name: give the module an attribute of its own."
BARE_ELSEWHERE = "It updates bare tensors of another function: pass them and return them."
SEVERAL_BARE = "It updates bare tensors along with others, under a condition, or with clipped gradients."
PARTLY_CLIPPED = "The optimizer updates a part of what is clipped: the norm is that of all gradients."
LEAKS = "The gradients of another loss are still in the parameters when this update is made."


@dataclass
class Optimized:
    """An optimizer that a step updates by."""

    text: str
    modules: tuple[str, ...]
    sure: bool = True
    """Whether the file shows that these are its modules."""
    groups: tuple[Group, ...] = ()
    state: str = ""
    """The variable with optax's state, where it updates bare tensors."""
    part: bool = False
    """Whether the optimizer says which parameters of its module it updates, ``optimizer.wrt``."""


@dataclass
class Update:
    """What is known of one update before it is written."""

    mode: Mode
    items: Sequence[Item]
    slice: UpdateSlice
    losses: list[tuple[int, ast.expr]]
    optimized: list[Optimized]
    clips: list[StepCall]
    first: int
    last: int
    """The items that the update takes up, first to last."""
    live: list[str] = field(default_factory=list)
    """Variables that the step has to give back, in the order they are written."""
    saved: dict[tuple[int, str], str] = field(default_factory=dict)
    """What the values that the slice keeps are called."""
    condition: ast.If | None = None
    grads: str = ""
    """The variable that gradients are added up in, or wait in."""
    step: int = 0
    """The item of the step, where the update is made in its place."""
    name: str = ""
    """What the compiled function is called."""
    once: str = ""
    """What it would do only once if it were compiled: it is traced at each call."""
    whole: bool = False
    """Whether all statements in front of it are part of it, in their order."""


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
        self.carried = flow.counting(lambda call: carrying_gradients(context, call))
        self.reader = reader
        self.jittable = jittable
        self.lost = lost
        self.independent = "The loss doesn't depend on the modules that the optimizer updates."
        body = scope.function.node.body if scope.function is not None else context.source.tree.body
        self.liveness = Liveness(flow, body, self._read_elsewhere())

    def slicer(self, items: Sequence[Item], apart: Mapping[int, Collection[str]] | None = None) -> UpdateSlicer:
        """What slices a block of this scope."""
        return UpdateSlicer(items, self.flow, self.carried, apart or {}, self._modules)

    @cached_property
    def _modules(self) -> set[str]:
        """The variables of this scope that hold modules."""
        nodes = self.ctx.source.nodes if self.scope.function is None else symbols.walk(self.scope.function.node)
        held = (n for n in nodes if isinstance(n, ast.Name | ast.Attribute) and is_module(self.ctx.fact(n)))
        return {variable for n in held if (variable := self.flow.variable(n)) is not None}

    def _read_elsewhere(self) -> set[str]:
        """Variables that other functions read: those of the module level, and attributes of ``self``."""
        if self.scope.function is not None:
            names = {n for s in symbols.walk(self.scope.function.node) if isinstance(s, ast.Global) for n in s.names}
            return names | {v for v in self.flow.writes(self.scope.function.node) if "." in v}
        out: set[str] = set()
        for function in self.ctx.inference.functions:
            out |= self.flow.reads(function)
        return out

    # --- one phase ------------------------------------------------------------------------------------------------

    def direct(self, items: Sequence[Item], phase: Phase, earlier: int, others: Sequence[Phase]) -> Update:
        """An update whose backward pass and step stand in one block. ``earlier`` is the item behind the last update.

        What has no gradient moves into the step with the rest, unless an earlier update needs it too. Raises Refused.
        """
        resets = {i: set[str]() for i, x in enumerate(items) if resets_state(self.ctx.inference, x.node)}
        differentiated = {i: self._differentiated(x.node) for i, x in enumerate(items[:earlier])}
        without = {i: reads for i, reads in differentiated.items() if reads is not None}
        try:
            update = self._direct(items, phase, earlier, others, resets)
        except Refused:
            if not without:
                raise
        else:
            if not any(i in update.slice.moved for i in without):
                return update
        return self._direct(items, phase, earlier, others, resets | without)

    def _differentiated(self, node: ast.stmt) -> set[str] | None:
        """What a block reads outside of its parts under ``torch.no_grad()``; None if it has no such parts."""
        if self.reader.has_no_gradient(node):
            return set()
        if not isinstance(node, ast.If):
            return None
        parts = [(part, self._differentiated(part)) for part in (*node.body, *node.orelse)]
        if all(reads is None for _, reads in parts):
            return None
        return self.flow.reads(node.test).union(*(self.flow.reads(p) if r is None else r for p, r in parts))

    def _direct(
        self,
        items: Sequence[Item],
        phase: Phase,
        earlier: int,
        others: Sequence[Phase],
        apart: Mapping[int, Collection[str]],
    ) -> Update:
        slicer = self.slicer(items, apart)
        losses = self.losses(items, phase)
        optimized = self._optimized(items, phase.steps, slicer, losses)
        conditions = {items[i].condition for i in (*phase.backs, *phase.steps)}
        if len(conditions) > 1:
            raise Refused("The backward pass and the step stand under different conditions.")
        condition = conditions.pop()
        call = (
            phase.backs[-1] if condition is None else next(i for i, x in enumerate(items) if x.condition is condition)
        )
        self._check_zeroed(items, phase, optimized, others)
        path = self._path(slicer, losses, optimized)
        whole = condition is None and len(others) == 1 and self._acts(items, path, losses)
        if whole:
            made = UpdateSlice(self._episode(items, path, call).moved(earlier), call=call)
        else:
            made = self._closed(slicer, path, call, earlier) if path else UpdateSlice(call=call)
        last = max(i for i in range(len(items)) if i in phase.steps or self._trailing(items, i, phase, optimized))
        minds = self._minds_update(items, call, max(phase.steps), optimized)
        zeros = [
            i for i, x in enumerate(items) if x.step_call is not None and x.step_call.kind == "zero" and earlier <= i
        ]
        mine = [i for i in zeros if i < phase.backs[0] and self.zeroes(items[i].step_call, optimized)]
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
        bare = any(one.state for one in update.optimized)
        if bare or update.condition is not None or len(modules) > 1 or self._is_part(modules[0]):
            raise Refused(reason)
        update.mode, update.grads, update.step = "apart", self.ctx.names.fresh("grads"), step

    def accumulated(
        self, items: Sequence[Item], phase: Phase, optimizer: ast.expr, grads: str, cleared: bool
    ) -> Update:
        """A backward pass whose gradients are used elsewhere in the scope, and added up unless ``cleared``.

        Raises Refused.
        """
        one = self.optimized(optimizer, self.slicer(items), self.losses(items, phase))
        if len(one.modules) != 1:
            raise Refused("Gradients of several modules add up over several backward passes.")
        return self._gradients("stored" if cleared else "accumulated", items, phase, one, grads)

    def stored(self, items: Sequence[Item], phase: Phase, trained: Optimized, grads: str) -> Update:
        """A backward pass whose gradients the program reads itself, from the variables ``grads``. Raises Refused."""
        return self._gradients("stored", items, phase, trained, grads)

    def _gradients(self, mode: Mode, items: Sequence[Item], phase: Phase, one: Optimized, grads: str) -> Update:
        """A backward pass without a step behind it. Raises Refused."""
        slicer = self.slicer(items)
        for leaf in one.modules if not one.text else ():
            given = [i for i in range(phase.backs[0]) if slicer.binds(i, leaf)]
            if given:
                slicer.bound.setdefault(given[-1], set()).add(leaf)
        losses = self.losses(items, phase)
        if any(items[i].condition is not None for i in phase.backs):
            raise Refused("The backward pass stands under a condition.")
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
            and (x.step_call.kind == "rescale" or self.zeroes(x.step_call, optimized))
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
        variables = self.variables(optimized)
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

    # --- optimizers -----------------------------------------------------------------------------------------------

    def _optimized(
        self, items: Sequence[Item], steps: Sequence[int], slicer: UpdateSlicer, losses: list[tuple[int, ast.expr]]
    ) -> list[Optimized]:
        out = []
        for index in steps:
            step_call = items[index].step_call
            assert step_call is not None
            out.append(self.optimized(step_call.subject, slicer, losses))
        for one, other in itertools.combinations(out, 2):
            if set(one.modules) & set(other.modules) and not apart(one.groups, other.groups):
                raise Refused("Two optimizers update the same parameters in one step, as far as the file shows.")
        return out

    def optimized(self, node: ast.expr, slicer: UpdateSlicer, losses: list[tuple[int, ast.expr]]) -> Optimized:
        """The optimizer that an expression names, with its modules. Raises Refused."""
        text = ast.unparse(node)
        modules = self.objects.modules(node, self.scope)
        if modules is not None and any("[" in module for module in modules):
            raise Refused(ITEM)
        made = self.objects.constructors(node, self.scope)
        plans = [self.ctx.plan.optimizers[m] for m in made or () if m in self.ctx.plan.optimizers]
        if len(plans) == 1 and plans[0].leaves:
            if made is not None and self.objects.scope(made[0]) != self.scope:
                raise Refused(BARE_ELSEWHERE)
            return Optimized(text, plans[0].leaves, state=plans[0].state)
        if modules is not None:
            groups = plans[0].groups if len(plans) == 1 else ()
            return Optimized(text, modules, groups=groups, part=any(plan.part for plan in plans))
        if made is not None:
            reasons = [p.reason for p in plans]
            raise Refused(next((r for r in reasons if r), f"Can't tell which modules {text} updates."))
        candidates = called_modules(self.ctx, slicer, losses)
        if len(candidates) > 1:
            candidates = {c for c in candidates if _is_named_after(text, c)} or candidates
        if len(candidates) != 1:
            raise Refused(
                f"Can't tell which of these {text} updates: {', '.join(sorted(candidates)) or 'no module is called'}."
            )
        return Optimized(text, (candidates.pop(),), sure=False)

    def variables(self, optimized: Sequence[Optimized]) -> set[str]:
        """The variables that the updated modules are in."""
        names: set[str] = set()
        for one in optimized:
            for text in one.modules:
                root = self.flow.root(ast.parse(text, mode="eval").body)
                if root is None:
                    raise Refused(f"Can't tell which variable {text} is in.")
                names.add(root)
        return names

    # --- checks ---------------------------------------------------------------------------------------------------

    def zeroes(self, step_call: StepCall | None, optimized: Sequence[Optimized]) -> bool:
        """Whether a zero_grad clears the gradients of all these optimizers' modules, or of one of them."""
        if step_call is None or step_call.kind != "zero":
            return False
        text = ast.unparse(step_call.subject)
        return any(
            text == o.text or text in o.modules or any(m.startswith(text + ".") for m in o.modules) for o in optimized
        )

    def _check_zeroed(
        self, items: Sequence[Item], phase: Phase, optimized: Sequence[Optimized], others: Sequence[Phase]
    ) -> None:
        """Raises Refused unless every module's gradients come from this phase's losses only."""
        for one in optimized:
            places = [i for i, x in enumerate(items) if self.zeroes(x.step_call, [one])]
            before = [i for i in places if i <= phase.backs[0]]
            after = [i for i in places if i > max(phase.steps)]
            if not before and not after:
                raise Refused(NOT_ZEROED)
            if not before and may_jump(items, phase.backs[-1] + 1, min(after)):
                raise Refused(KEPT)
            if not before:
                self.check_alone(one)
            start = max(before) if before else -1
            for other in others:
                for index in other.backs:
                    if other is phase or not self._reaches(items, index, one):
                        continue
                    if start < index < phase.backs[0] or (not before and index > max(after)):
                        raise Refused(LEAKS)

    def check_alone(self, one: Optimized) -> None:
        """Raises Refused if another optimizer may leave gradients in what an optimizer updates."""
        if one.part or shares_its_modules(self.ctx, self.objects, self.scope, one.modules, one.groups):
            raise Refused(LEFT_BY_OTHERS)

    def _reaches(self, items: Sequence[Item], index: int, one: Optimized) -> bool:
        """Whether a loss depends on an optimizer's modules."""
        step_call = items[index].step_call
        assert step_call is not None
        variables = self.variables([one])
        path = self.slicer(items).path([(index, step_call.subject)], variables)
        return bool(path or self.flow.reads(step_call.subject) & variables)

    def _minds_update(self, items: Sequence[Item], call: int, last: int, optimized: Sequence[Optimized]) -> bool:
        """Whether something between the call and the step may change what the step does, by functions that it calls.

        Raises Refused if it uses the module or the optimizer itself.
        """
        mine = self.variables(optimized) | {o.text for o in optimized}
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
        own = self.variables(update.optimized).union(*map(self.flow.writes, moved))
        code = [*moved, *(loss for _, loss in update.losses), *update.slice.split.values()]
        modules = [module for one in update.optimized for module in one.modules]
        sure = all(one.sure for one in update.optimized)
        if (lost := self.lost.reason(code, modules if sure else None, update.whole)) is not None:
            raise Refused(lost)
        given = given_before(self.ctx.inference, self.flow, code, own)
        for node in code:
            problem = self.jittable.problem(node, given)
            if isinstance(problem, Once) and self._runs_uncompiled(update, problem):
                update.once = worst((update.once or None, problem)) or problem
            elif problem is not None:
                raise Refused(f"The loss can't be computed under jit: {problem}.")
        for clip in update.clips:
            self.clip_target(clip, update.optimized)

    def _runs_uncompiled(self, update: Update, problem: Once) -> bool:
        """Whether an update is right if it is traced anew at each call.

        A parameter that the step did not reach stays as it is in PyTorch; optax moves it on by what it remembers.
        """
        made = [self.objects.constructors(ast.parse(o.text, mode="eval").body, self.scope) for o in update.optimized]
        bare = all(calls is not None and all(map(self._remembers_nothing, calls)) for calls in made)
        fits = update.mode == "fused" and (update.whole or not isinstance(problem, Acting))
        return fits and (bare or not isinstance(problem, Drawn))

    def _remembers_nothing(self, made: ast.Call) -> bool:
        """Whether an optimizer only takes steps along the gradient: SGD without momentum and weight decay."""
        fact = self.ctx.fact(made.func)
        plain = len(made.args) <= 2 and {k.arg for k in made.keywords} <= {"params", "lr"}
        return isinstance(fact, Qual) and fact.name in names_with(Trait.PLAIN_STEPS) and plain

    def clip_target(self, clip: StepCall, optimized: Sequence[Optimized]) -> Optimized:
        """The optimizer whose gradients are clipped. Raises Refused."""
        target = updated(clip.subject, self.scope, self.objects)
        for one in optimized:
            if target.target and not target.groups and tuple(targets(target.target)) == one.modules:
                halves = any(other is not one and other.modules == one.modules for other in optimized)
                left = any(group.frozen for group in one.groups) and not halves
                if left and clip_kind(self.ctx.inference, clip) == "norm":
                    raise Refused(PARTLY_CLIPPED)
                if len(optimized) * len(one.modules) > 1 and any(map(self._is_part, one.modules)):
                    raise Refused("The gradients of parts of a module are clipped apart from others.")
                return one
        raise Refused(f"Can't tell whose gradients {ast.unparse(clip.call)} clips.")

    def _is_part(self, module: str) -> bool:
        """Whether a module is reached through another one: ``model.head``."""
        return self.flow.variable(ast.parse(module, mode="eval").body) is None

    # --- results --------------------------------------------------------------------------------------------------

    def live(self, update: Update) -> list[str]:
        """Variables that the moved code writes and later code reads, in the order they are written."""
        items, made = update.items, update.slice
        wanted = set(self.liveness.after.get(items[update.losses[-1][0]].node, set()))
        if update.condition is not None:
            wanted |= self.liveness.after.get(update.condition, set())
        kept = {(late, name) for (_, name), waiting in made.saved.items() for late in waiting}
        for index in (*made.delayed, *made.split):
            wanted |= {name for name in self.flow.reads(items[index].node) if (index, name) not in kept}
        if update.whole:
            episode = self._episode(items, made.moved, made.call)
            bound = episode.bound(made.moved)
            episode.check_added(made.moved, wanted - bound)
            wanted &= bound
        update.saved = {key: self.ctx.names.fresh(f"raw_{key[1]}") for key in made.saved}
        out: list[str] = []
        for index in sorted([*made.moved, *made.split]):
            if index in made.shared:
                continue
            for name in self._in_order(items[index].node):
                if (name in wanted or index in made.split) and name not in out:
                    out.append(name)
        return out + list(update.saved.values())

    def _in_order(self, node: ast.stmt) -> list[str]:
        """Variables a statement writes, in the order they stand in."""
        names: list[str] = []
        for inner in symbols.walk(node):
            name = self.flow.variable(inner)
            if name is not None and name in self.flow.writes(node) and name not in names:
                names.append(name)
        return names


def _is_named_after(optimizer: str, module: str) -> bool:
    """Whether an optimizer bears the name of a module: ``encoder_optimizer``, ``self.opt_encoder``."""
    words = set(optimizer.rpartition(".")[2].lower().split("_"))
    return set(module.rpartition(".")[2].lower().split("_")) < words
