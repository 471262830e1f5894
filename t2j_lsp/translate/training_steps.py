"""Finds the training steps of a file and puts handlers on them; loops that aren't surely understood are left whole."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from .classes import FunctionInfo
from .context import Context
from .precedence import Piece
from .statements import Statements
from .training_flow import Flow
from .training_objects import Objects, Scope
from .training_protocol import Item, Protocol, Reader, Refused, blocks, flatten
from .training_region import AUTOCAST, Region, insert_function
from .training_slice import Slicer
from .training_step import StepWriter, clip_lines, limits, unused
from .training_text import rendered
from .training_trace import Trace
from .training_update import NOT_ZEROED, Phase, Update, Updates

ELSEWHERE = "The optimizer's step isn't made in the function that computes the gradients."


@dataclass
class Found:
    """The training code of one block."""

    block: Sequence[ast.stmt]
    items: list[Item]
    updates: list[Update] = field(default_factory=list)


class Steps:
    """Plans the updates of every scope of a file."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects
        self.reader = Reader(context)
        self.trace = Trace(context, self.reader)
        self.refused: list[ast.stmt] = []
        """Loops and functions that are left as they are."""
        self.converted = False
        self.used: set[ast.stmt] = set()
        """Statements that an update has taken up."""
        self._inserted: dict[ast.AST, int] = {}

    def plan(self) -> None:
        for info in [None, *self.ctx.inference.functions.values()]:
            if info is None or not info.external:
                _ScopePlan(self, info).plan()

    def leave(self, node: ast.stmt, reason: str) -> None:
        """Leave a loop or function as it is, and say why."""
        if node in self.refused:
            return
        self.refused.append(node)

        def handler(statements: Statements) -> None:
            self.ctx.gap(node, "training loop", "training-loop", f"This training code isn't converted: {reason}")

        self.ctx.statement_handlers[node] = handler

    def insert(self, place: ast.AST, lines: list[str]) -> None:
        node = place
        while not isinstance(self.ctx.parents.get(node), ast.Module):
            node = self.ctx.parents[node]
        count = self._inserted.get(node, 0)
        self._inserted[node] = count + 1
        insert_function(self.ctx, place, lines, count)


class _ScopePlan:
    """Plans one scope."""

    def __init__(self, steps: Steps, info: FunctionInfo | None) -> None:
        self.steps = steps
        self.ctx = steps.ctx
        self.info = info
        self.scope = Scope(info)
        self.body: Sequence[ast.stmt] = info.node.body if info is not None else self.ctx.source.tree.body
        self.flow = Flow(self._self_name())
        self.writer = StepWriter(self.ctx, steps.objects, self.scope, self.flow)

    def _self_name(self) -> str | None:
        """``self``, where its attributes are variables of their own: in a class that isn't a module."""
        owner = self.steps.objects.owner(self.scope)
        if owner is None or owner.is_module:
            return None
        return "self"

    def plan(self) -> None:
        if not self._computes_gradients():
            return
        try:
            found = self._found()
            self._accumulated(found)
            for one in found:
                if one.updates:
                    self._handle(one)
        except Refused as problem:
            self._leave(str(problem))

    def _computes_gradients(self) -> bool:
        for block in blocks(self.body):
            for node in block:
                for inner in _own_expressions(node):
                    if (
                        isinstance(inner, ast.Call)
                        and isinstance(inner.func, ast.Attribute)
                        and inner.func.attr == "backward"
                    ):
                        return True
        return False

    def _leave(self, reason: str) -> None:
        """Leave every loop of the scope that computes gradients, or the function if none does."""
        roots = [n for n in self._roots() if any(_is_backward(i) for i in ast.walk(n))]
        if not roots and self.info is not None:
            roots = [self.info.node]
        elif not roots:
            roots = [n for n in self.body if any(_is_backward(i) for i in ast.walk(n))]
        for root in roots:
            if not isinstance(root, ast.FunctionDef | ast.ClassDef) or root is (self.info.node if self.info else None):
                self.steps.leave(root, reason)

    def _roots(self) -> list[ast.stmt]:
        """The outermost loops of the scope."""
        out: list[ast.stmt] = []
        stack = list(self.body)[::-1]
        while stack:
            node = stack.pop()
            if isinstance(node, ast.For | ast.While | ast.AsyncFor):
                out.append(node)
            elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for name in ("body", "orelse", "finalbody"):
                    stack += list(getattr(node, name, []))[::-1]
        return out

    # --- finding --------------------------------------------------------------------------------------------------

    def _found(self) -> list[Found]:
        """The blocks with backward passes, with the updates that are complete in them. Raises Refused."""
        self.updates = Updates(self.ctx, self.steps.objects, self.scope, self.flow, self.steps.reader, self.steps.trace)
        out: list[Found] = []
        seen: set[ast.stmt] = set()
        for block in blocks(self.body):
            if any(s in seen for s in block):
                continue
            items = flatten(block, self.steps.reader)
            if not any(i.protocol is not None and i.protocol.kind == "backward" for i in items):
                continue
            seen |= {i.node for i in items} | {w for i in items for w in i.inside}
            seen |= {s for i in items for s in (i.condition.body if i.condition is not None else ())}
            out.append(Found(block, items))
        if not out:
            raise Refused("A backward pass stands inside an expression.")
        return out

    def _accumulated(self, found: list[Found]) -> None:
        """Make the updates of every block: direct ones, and those that add gradients up. Raises Refused."""
        waiting: list[tuple[Found, Phase, str]] = []
        for one in found:
            phases = self.updates.phases(one.items)
            earlier = 0
            for phase in phases:
                if not phase.steps:
                    waiting.append((one, phase, ELSEWHERE))
                    continue
                try:
                    update = self.updates.direct(one.items, phase, earlier, phases)
                except Refused as problem:
                    if len(phases) > 1:
                        raise
                    waiting.append((one, phase, str(problem)))
                    continue
                one.updates.append(update)
                earlier = update.last + 1
        if not waiting:
            return
        if len(waiting) > 1 or any(one.updates for one in found):
            raise Refused(waiting[0][2])
        self._add_up(*waiting[0])

    def _add_up(self, one: Found, phase: Phase, reason: str) -> None:
        """An update whose gradients live in a variable, between the backward pass, clipping, step and zeroing."""
        protocols = self._protocols()
        steps = [p for p in protocols if p.kind == "step"]
        zeros = [p for p in protocols if p.kind == "zero"]
        if not steps or len({ast.unparse(p.subject) for p in steps}) != 1:
            raise Refused(reason)
        if not zeros:
            raise Refused(NOT_ZEROED if reason == ELSEWHERE else reason)
        grads = self.ctx.fresh("grads")
        update = self.updates.accumulated(one.items, phase, steps[0].subject, grads)
        optimized = update.optimized[0]
        for zero in zeros:
            if not self.updates.zeroes(zero, [optimized]):
                raise Refused(reason)
        for clip in [p for p in protocols if p.kind == "clip"]:
            self.updates.clip_target(clip, [optimized])
        one.updates.append(update)
        self._handle_parts(protocols, optimized.text, optimized.modules[0], grads)
        self._start(one, zeros, optimized.modules[0], grads)

    def _protocols(self) -> list[Protocol]:
        """Every part of a training step in the scope. Raises Refused."""
        out = []
        for block in blocks(self.body):
            for node in block:
                protocol = self.steps.reader.read(node)
                if protocol is not None:
                    out.append(protocol)
        return out

    # --- handling -------------------------------------------------------------------------------------------------

    def _handle(self, one: Found) -> None:
        """Put handlers on the statements that the updates of a block replace."""
        region = Region(self.ctx, one.block, one.items, one.updates)
        changed = region.changed()
        self._name(one)
        self._check_shared(one)

        def write(statements: Statements) -> None:
            steps = []
            for update in one.updates:
                self._notes(update)
                steps.append(self.writer.write(update, statements))
            for step in steps:
                self.steps.insert(one.block[0], step.function)
            region.write(statements, steps)
            self.ctx.converted += 1

        for statement in changed:
            self.ctx.statement_handlers[statement] = _written
        self.ctx.statement_handlers[changed[0]] = write
        self.steps.converted = True
        self.steps.used |= set(changed) | {one.items[i].node for i in region.taken}

    def _name(self, one: Found) -> None:
        for update in one.updates:
            hints = ["train_step", "update_step"]
            if update.mode == "accumulated":
                hints = ["accumulate_gradients", "add_gradients"]
            elif len(one.updates) > 1:
                module = update.optimized[0].modules[0].rpartition(".")[2]
                hints = [f"{module}_step", f"update_{module}"]
            if self.info is not None and update.mode != "accumulated":
                hints.insert(1, f"{self.info.name}_step")
            update.name = unused(self.ctx, *hints)

    def _notes(self, update: Update) -> None:
        for index in range(update.first, update.last + 1):
            for outer in update.items[index].inside:
                for entry in outer.items:
                    if self.steps.reader.is_autocast(entry.context_expr) or isinstance(entry.context_expr, ast.Name):
                        self.ctx.note(entry.context_expr, "torch.autocast", "close", AUTOCAST)
        for one in update.optimized:
            if not one.sure:
                self.ctx.note(
                    update.items[update.losses[0][0]].node,
                    "torch.optim.Optimizer",
                    "probable",
                    f"{one.text} is taken to update {one.modules[0]}, the module that the loss is computed with",
                )

    def _check_shared(self, one: Found) -> None:
        """Raises Refused if a forward pass that two updates need can't be written twice."""
        for update in one.updates:
            modules = {m for o in update.optimized for m in o.modules}
            for index in update.slice.shared:
                node = one.items[index].node
                calls = [
                    n for n in ast.walk(node) if isinstance(n, ast.Call) and ast.unparse(n.func) in modules and n.args
                ]
                if len(calls) != 1 or not isinstance(node, ast.Assign):
                    raise Refused("A value of one update is used in another, and can't be computed twice surely.")

    # --- gradients that add up ------------------------------------------------------------------------------------

    def _handle_parts(self, protocols: list[Protocol], optimizer: str, module: str, grads: str) -> None:
        """Zeroing, clipping and stepping as operations on the variable that holds the gradients."""
        for protocol in protocols:
            if protocol.kind != "backward":
                self.ctx.statement_handlers[protocol.node] = self._part(protocol, optimizer, module, grads)
                self.steps.used.add(protocol.node)

    def _part(self, protocol: Protocol, optimizer: str, module: str, grads: str):  # type: ignore[no-untyped-def]
        def handler(statements: Statements) -> None:
            need = statements.renderer.need
            self.ctx.converted += 1
            match protocol.kind:
                case "zero":
                    lines = [f"{grads} = {need('zero_gradients')}({module})"]
                case "clip":
                    arguments = [rendered(statements, n, protocol.node)[1] for n in limits(protocol.call)]
                    lines = clip_lines(self.ctx, protocol, arguments, grads, need)
                case "step":
                    lines = [f"{need('apply_gradients')}({module}, {optimizer}, {grads})"]
                case _:
                    self.ctx.delete(protocol.node)
                    return
            indent = self.ctx.indent(protocol.node.lineno)
            self.ctx.replace(protocol.node, f"{self.ctx.source.newline}{indent}".join(lines))

        return handler

    def _start(self, one: Found, zeros: list[Protocol], module: str, grads: str) -> None:
        """Gradients start at zero in front of the loop, if it isn't zeroed there anyway."""
        root = next((r for r in self._roots() if one.items[0].node in set(ast.walk(r))), None)
        if root is None:
            return
        before = [
            z
            for z in zeros
            if z.node in self.body and root in self.body and self.body.index(z.node) < self.body.index(root)
        ]
        if before:
            return
        inner = self.ctx.statement_handlers.get(root)

        def handler(statements: Statements) -> None:
            self.ctx.insert_before(
                root, [f"{grads} = {statements.renderer.need('zero_gradients')}({module})"], priority=-2
            )
            if inner is not None:
                inner(statements)
            else:
                statements.dispatch(root)

        self.ctx.statement_handlers[root] = handler


def _own_expressions(node: ast.stmt) -> list[ast.AST]:
    """The expressions of a statement, without those of the statements inside it."""
    out: list[ast.AST] = []
    stack: list[ast.AST] = [c for c in ast.iter_child_nodes(node) if not isinstance(c, ast.stmt)]
    while stack:
        one = stack.pop()
        out.append(one)
        stack += [c for c in ast.iter_child_nodes(one) if not isinstance(c, ast.stmt | ast.Lambda)]
    return out


def _is_backward(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward"


def _written(statements: Statements) -> None:
    """The statement's lines are written already."""


__all__ = ["Piece", "Slicer", "Steps"]
