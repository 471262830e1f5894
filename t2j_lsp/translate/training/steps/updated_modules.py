"""What the optimizers of a training step update: the modules of each, whose gradients are zeroed and clipped."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.training.optimizers.groups import Updated, apart, tuple_of, updated
from t2j_lsp.translate.training.optimizers.parts_of_one import LEFT_BY_OTHERS, shares_its_modules
from t2j_lsp.translate.training.program.called_modules import called_modules
from t2j_lsp.translate.training.program.flow import DataFlow
from t2j_lsp.translate.training.program.named_modules import targets
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.slice import UpdateSlicer
from t2j_lsp.translate.training.program.step_calls import GROUPS, Item, Phase, Refused, StepCall, clip_kind, limits

from .cut_off import carrying_gradients, is_detached
from .skipped import KEPT, may_jump
from .update import FLAGGED, NOT_ZEROED, Optimized

ITEM = "It updates an item of a list of modules, whose gradients have no name: give the module an attribute of its own."
BARE_ELSEWHERE = "It updates bare tensors of another function: pass them and return them."
PARTLY_CLIPPED = "The optimizer updates a part of what is clipped: the norm is that of all gradients."
PARTLY_CHANGED = "The optimizer updates a part of the parameters whose gradients are changed."
ZEROED_BETWEEN = "Gradients of a backward pass are zeroed before another one, and the update takes only what is left."
LEAKS = "The gradients of another loss are still in the parameters when this update is made."


def _names(*nodes: ast.AST) -> set[str]:
    return {n.id for node in nodes for n in symbols.walk(node) if isinstance(n, ast.Name)}


class UpdatedModules:
    """Which modules of one scope the optimizers of a step update, and whose gradients they use."""

    def __init__(self, context: Context, objects: Objects, scope: VariableScope, flow: DataFlow) -> None:
        self.ctx = context
        self.objects = objects
        self.scope = scope
        self.flow = flow
        self.carried = flow.counting(lambda call: carrying_gradients(context, call))

    def slicer(self, items: Sequence[Item], apart: Mapping[int, Collection[str]] | None = None) -> UpdateSlicer:
        """What slices a block of this scope."""
        return UpdateSlicer(items, self.flow, self.carried, apart or {}, self._modules)

    @cached_property
    def _modules(self) -> set[str]:
        """The variables of this scope that hold modules."""
        nodes = self.ctx.source.nodes if self.scope.function is None else symbols.walk(self.scope.function.node)
        held = (n for n in nodes if isinstance(n, ast.Name | ast.Attribute) and is_module(self.ctx.fact(n)))
        return {variable for n in held if (variable := self.flow.variable(n)) is not None}

    @cached_property
    def differentiated(self) -> DataFlow:
        """The flow of what gradients go through: nothing that is detached counts."""
        return self.flow.counting(lambda c: () if is_detached(self.ctx, c) else carrying_gradients(self.ctx, c))

    def of_steps(
        self, items: Sequence[Item], steps: Sequence[int], slicer: UpdateSlicer, losses: list[tuple[int, ast.expr]]
    ) -> list[Optimized]:
        out = []
        for index in steps:
            step_call = items[index].step_call
            assert step_call is not None
            out.append(self.optimized(step_call.subject, slicer, losses))
        if any(one.flagged for one in out) and sum(len(one.modules) for one in out) > 1:
            raise Refused(FLAGGED)
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
            if made is not None and not self._has_tensors(plans[0].leaves, made[0]):
                raise Refused(BARE_ELSEWHERE)
            return Optimized(text, plans[0].leaves, state=plans[0].state)
        if modules is not None:
            groups = plans[0].groups if len(plans) == 1 else ()
            alone = any(plan.target == tuple_of(targets(plan.target)[:1]) for plan in plans)
            part, flagged = any(plan.part for plan in plans), any(plan.flagged for plan in plans)
            return Optimized(text, modules, groups=groups, part=part, flagged=flagged, alone=alone)
        if made is not None:
            reasons = [p.reason for p in plans]
            raise Refused(next((r for r in reasons if r), f"Can't tell which modules {text} updates."))
        candidates = {c for c in called_modules(self.ctx, slicer, losses) if not self._is_made_apart(text, c)}
        if len(candidates) > 1:
            candidates = {c for c in candidates if _is_named_after(text, c)} or candidates
        if len(candidates) != 1:
            raise Refused(
                f"Can't tell which of these {text} updates: {', '.join(sorted(candidates)) or 'no module is called'}."
            )
        flagged = any(plan.flagged for plan in self.ctx.plan.optimizers.values())
        return Optimized(text, (candidates.pop(),), sure=False, flagged=flagged)

    def _has_tensors(self, leaves: Sequence[str], made: ast.Call) -> bool:
        """Whether the bare tensors of an optimizer are variables of this scope: here, or attributes of ``self``."""
        where = self.objects.scope(made)
        held = all(self.flow.variable(ast.parse(text, mode="eval").body) == text and "." in text for text in leaves)
        return where == self.scope or held and self.objects.owner(where) is self.objects.owner(self.scope)

    def _is_made_apart(self, optimizer: str, module: str) -> bool:
        """Whether the scope gets an optimizer from a call that has nothing to do with a module: it updates another."""
        root = optimizer.partition(".")[0]
        function = self.scope.function
        code = self.ctx.source.tree if function is None else function.node
        given = [n for n in symbols.own_nodes(code) if isinstance(n, ast.Assign) and root in _names(*n.targets)]
        made = [n for n in given if isinstance(n.value, ast.Call)]
        return bool(made) and not any(self._mentions(one, module.partition(".")[0], code) for one in made)

    def _mentions(self, made: ast.Assign, name: str, code: ast.AST) -> bool:
        """Whether an assignment gives or is given a variable, or something that was made of it."""
        mentioned = _names(made)
        others = [n for n in symbols.own_nodes(code) if isinstance(n, ast.Assign) and mentioned & _names(*n.targets)]
        return name in mentioned.union(*map(_names, others))

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

    def zeroes(self, step_call: StepCall | None, optimized: Sequence[Optimized]) -> bool:
        """Whether a zero_grad clears the gradients of all these optimizers' modules, or of one of them."""
        if step_call is None or step_call.kind != "zero":
            return False
        text = ast.unparse(step_call.subject)
        return any(
            text == o.text or text in o.modules or any(m.startswith(text + ".") for m in o.modules) for o in optimized
        )

    def check_zeroed(
        self, items: Sequence[Item], phase: Phase, optimized: Sequence[Optimized], others: Sequence[Phase]
    ) -> None:
        """Raises Refused unless every module's gradients come from this phase's losses only."""
        for one in optimized:
            places = [i for i, x in enumerate(items) if self.zeroes(x.step_call, [one])]
            if any(phase.backs[0] < i < phase.backs[-1] for i in places):
                raise Refused(ZEROED_BETWEEN)
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
                    if other is phase or not self.reaches(items, index, one):
                        continue
                    if start < index < phase.backs[0] or (not before and index > max(after)):
                        raise Refused(LEAKS)

    def check_alone(self, one: Optimized) -> None:
        """Raises Refused if another optimizer may leave gradients in what an optimizer updates."""
        if one.part or shares_its_modules(self.ctx, self.objects, self.scope, one.modules, one.groups):
            raise Refused(LEFT_BY_OTHERS)

    def reaches(self, items: Sequence[Item], index: int, one: Optimized, apart: Collection[int] = ()) -> bool:
        """Whether gradients of a backward pass go to an optimizer's modules; none go through the items ``apart``."""
        step_call = items[index].step_call
        assert step_call is not None
        variables = self.variables([one])
        needed = set(self.differentiated.reads(step_call.subject))
        for at in range(index, -1, -1):
            node = items[at].node
            written = self.flow.writes(node) & needed
            if not written or at in apart or items[at].step_call is not None:
                continue
            if (
                isinstance(node, ast.Assign | ast.AnnAssign)
                and not written & self.flow.reads(node) | variables & written
            ):
                needed -= written
            needed |= self.differentiated.reads(node)
        return bool(needed & variables)

    def clip_target(self, clip: StepCall, optimized: Sequence[Optimized], apart: bool = False) -> Optimized:
        """The optimizer whose gradients are clipped; ``apart``, those of one of its modules may be. Raises Refused."""
        limits(clip)  # raises where nothing says what they are clipped to
        target = updated(clip.subject, self.scope, self.objects)
        for one in optimized:
            own = target.target and not target.groups and tuple(targets(target.target)) == one.modules
            if own or clips_groups(clip, one):
                halves = any(other is not one and other.modules == one.modules for other in optimized)
                left = any(group.frozen for group in one.groups) and not halves
                if left and clip_kind(self.ctx.inference, clip) == "norm":
                    raise Refused(PARTLY_CLIPPED)
                if clip.edit is not None and clip.edit.reads_parameter:
                    if len(one.modules) > 1 or one.part or any(group.frozen for group in one.groups):
                        raise Refused(PARTLY_CHANGED)
                if len(optimized) * len(one.modules) > 1 and any(map(self.is_part, one.modules)):
                    raise Refused("The gradients of parts of a module are clipped apart from others.")
                return one
            if apart and len(optimized) == 1 and clipped_module(target, one) and clip.edit is None:
                if not (any(group.frozen for group in one.groups) or any(map(self.is_part, one.modules))):
                    return one
        raise Refused(f"Can't tell whose gradients {ast.unparse(clip.call)} clips.")

    def is_part(self, module: str) -> bool:
        """Whether a module is reached through another one: ``model.head``."""
        return self.flow.variable(ast.parse(module, mode="eval").body) is None


def clipped_module(clipped: Updated, one: Optimized) -> str:
    """The module, one of several that an optimizer updates, whose gradients are clipped alone; or nothing."""
    alone = len(one.modules) > 1 and clipped.target in one.modules and not clipped.groups
    return clipped.target if alone else ""


def clips_groups(clip: StepCall, one: Optimized) -> bool:
    """Whether the parameters of an optimizer are walked over by its groups: ``for group in optimizer.param_groups``.

    Or taken from the only one: ``optimizer.param_groups[0]["params"]``.
    """
    match clip.subject:
        case ast.Subscript(
            value=ast.Subscript(value=ast.Attribute(attr=attr, value=owner), slice=ast.Constant(value=0)),
            slice=ast.Constant(value="params"),
        ) if attr == GROUPS:
            return ast.unparse(owner) == one.text and len(one.groups) <= 1
        case ast.Attribute(attr=attr, value=owner) if attr == GROUPS:
            return ast.unparse(owner) == one.text
    return False


def _is_named_after(optimizer: str, module: str) -> bool:
    """Whether an optimizer bears the name of a module: ``encoder_optimizer``, ``self.opt_encoder``."""
    words = set(optimizer.rpartition(".")[2].lower().split("_"))
    return set(module.rpartition(".")[2].lower().split("_")) < words
