"""Writes the compiled function of an update: what is in it, what it is passed, and under which names."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator, Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.inference.call_sites import reached_functions
from t2j_lsp.translate.inference.host_random import PRINTS, is_print, prints_in_forward
from t2j_lsp.translate.rule.array_classes import GIVES_OBJECT, has_opaque
from t2j_lsp.translate.rule.pieces import ATOM, Piece, bracket
from t2j_lsp.translate.training.program.dict_order import DictOrder
from t2j_lsp.translate.training.program.flow import DataFlow
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.passed import Input, name_passed
from t2j_lsp.translate.training.program.slice import SWAPPED
from t2j_lsp.translate.training.program.step_calls import Refused, StepCall, limits
from t2j_lsp.translate.training.program.text import converted, lead_comments, rendered

from .bare_step import BareComposer
from .compiled_function import CompiledFunction, StepScope
from .composed_step import Composer, StepBody, UpdateStep, base_of
from .inputs import Inputs
from .loss_shapes import LossShapes
from .parameter_loops import limits as limits_of
from .partly_given import PartlyGiven, none_first
from .restored_numbers import RestoredNumbers
from .shared_draws import draw_once
from .update import Update


class StepWriter:
    """Writes the steps of one scope."""

    def __init__(self, context: Context, objects: Objects, scope: VariableScope, flow: DataFlow) -> None:
        self.ctx = context
        self.objects = objects
        self.scope = scope
        self.flow = flow
        self.partly = PartlyGiven(context, scope, flow)

    def write(self, update: Update, statements: StatementRewriter) -> UpdateStep:
        """Render an update; ``statements`` knows the functions and classes around it."""
        self.need = statements.renderer.need
        moved = sorted([*update.slice.moved, *update.slice.split])
        parts, trained = self._parts(update, moved), self._trained(update)
        finder = Inputs(self.ctx, self.flow, self.scope, self.objects, compiled=not update.once)
        carried = self.partly.kept(update)
        inputs = finder.of(parts, trained, carried)
        optimizers = (
            [finder.optimizer(one.text) for one in update.optimized] if update.mode in ("fused", "conditional") else []
        )
        clips = [self._clip(clip, update, finder, inputs, statements) for clip in update.clips]
        for one in inputs.values():
            kept = [place for place in one.places if place in self.ctx.plan.kept_tensors]
            if kept and one.kind == "array" and not one.given:  # a compiled function takes no tensors of PyTorch
                one.given, one.places = one.text, [*kept, *(p for p in one.places if p not in kept)]
        for one in inputs.values():
            if one.given:
                _, one.given = rendered(self.ctx, statements, one.places[0], update.items[update.losses[0][0]].node)
        behind = [update.items[index].node for index in update.loops]
        self._limits([limit for loop in behind for limit in limits_of(loop)], finder, inputs)
        renamed([*inputs.values()], [*parts, *behind], self.ctx)
        name_passed(parts, self.flow.passed, [*inputs.values()])
        for one in inputs.values():
            for place in one.places if one.given else ():
                statements.renderer.put(place, Piece(one.name))
        for one in inputs.values():
            if one.positions:
                one.given = f"{self.need('jnp')}.nonzero({one.given or one.text})"
        inputs |= {i.text: i for i in draw_once(self.ctx, statements, update.items, update.slice)}
        body = self._body(update, statements, moved)
        body.results = [n for n in update.live if len(body.losses) > 1 or n != body.losses[0][1]]
        order = DictOrder(self.ctx)
        body.ordered = frozenset(name for name in body.results if order.loses(name, parts))
        self._draws(body, inputs, finder)
        asked = {*trained, *carried}
        used = [i for i in inputs.values() if i.text in asked or body.mentions(i.name) or i.kind == "limit"]
        composer = BareComposer if update.optimized[0].state else Composer
        at = StepScope(self.ctx, self.objects, self.scope, self.flow, self.need)
        step = composer(at, update, body, used, optimizers, trained, clips, inputs).step()
        step.numbers = self._numbers(update, parts).lines(body.results) if not update.once else []
        return step

    def check(self, update: Update) -> None:
        """Raises Refused if what the step computes with can't be passed to a compiled function."""
        moved = sorted([*update.slice.moved, *update.slice.split])
        parts, order = self._parts(update, moved), DictOrder(self.ctx)
        self.inputs(update)
        self._check_losses(update)
        self._check_prints(update, parts)
        for name in update.live:
            order.loses(name, parts)
        inside = [n for part in parts for n in symbols.walk(part) if isinstance(n, ast.Name) and n.id in update.live]
        for node in inside:
            if has_opaque(self.ctx.fact(node)):
                raise Refused(GIVES_OBJECT.format(node.id))
        if not update.once:
            self._numbers(update, parts).lines(update.live)

    def _numbers(self, update: Update, parts: Sequence[ast.AST]) -> RestoredNumbers:
        return RestoredNumbers(self.ctx, parts, update.items[update.slice.call].node)

    def _check_losses(self, update: Update) -> None:
        """Raises Refused if what stays in front of the step changes what a loss reads that is differentiated before."""
        made = update.slice
        apart = {*made.moved, *made.split, *made.delayed}
        for at, loss in update.losses:
            for index in range(at + 1, made.call):
                item = update.items[index]
                stays = index not in apart and item.step_call is None
                if stays and self.flow.writes(item.node) & self.flow.reads(loss):
                    raise Refused(SWAPPED)

    def adds_arrays(self, update: Update) -> bool:
        """Whether what adds gradients up, and what updates by them, may bind their modules and the optimizer.

        What is bound takes no variables besides, so that these gradients are arrays.
        """
        one = update.optimized[0]
        if update.mode != "accumulated" or one.part or one.flagged or update.edited:
            return False
        inputs = self.inputs(update)
        module = inputs.get(one.modules[0])
        if module is None or len(self._trained(update)) > 1:
            return False
        finder = Inputs(self.ctx, self.flow, self.scope, self.objects)
        place = update.items[update.slice.call].node
        parts = self._parts(update, sorted([*update.slice.moved, *update.slice.split]))
        at = StepScope(self.ctx, self.objects, self.scope, self.flow, str)
        adding = CompiledFunction(at, [*inputs.values()], "\n".join(map(ast.unparse, parts)), (), place)
        updating = CompiledFunction(at, [module], "", [finder.optimizer(one.text)], place)
        return adding.is_bound and updating.is_bound

    def _check_prints(self, update: Update, parts: Sequence[ast.AST]) -> None:
        """Raises Refused if what the step prints would stand behind what is printed after it."""
        inference, made = self.ctx.inference, update.slice
        gone = {*made.moved, *made.split, *made.delayed}
        staying = [i for i in range(min(gone, default=made.call), made.call) if i not in gone]
        if not inference.has(PRINTS) or not any(map(_prints, (update.items[i].node for i in staying))):
            return
        calls = (n for part in parts for n in symbols.walk(part) if isinstance(n, ast.Call))
        modules = any(prints_in_forward(inference, self.ctx.fact(call.func)) for call in calls)
        if modules or any(_prints(info.node) for info in reached_functions(inference, parts)):
            raise Refused(SWAPPED)

    def inputs(self, update: Update) -> dict[str, Input]:
        """What the step is passed. Raises Refused."""
        parts = self._parts(update, sorted([*update.slice.moved, *update.slice.split]))
        finder = Inputs(self.ctx, self.flow, self.scope, self.objects, not update.once)
        return finder.of(parts, self._trained(update), self.partly.kept(update))

    def _parts(self, update: Update, moved: Sequence[int]) -> list[ast.AST]:
        """What is computed in the step, in its order."""
        parts: list[ast.AST] = [update.slice.split.get(i) or update.items[i].node for i in moved]
        return [*parts, *(one.value for one in update.measures), *(loss for _, loss in update.losses)]

    def _trained(self, update: Update) -> list[str]:
        return list(dict.fromkeys(base_of(self.flow, m) for one in update.optimized for m in one.modules))

    # --- the differentiated function ------------------------------------------------------------------------------

    def _body(self, update: Update, statements: StatementRewriter, moved: Sequence[int]) -> StepBody:
        lines = none_first(self.partly.unbound(update))
        parts = self._parts(update, moved)
        early: dict[int, str] = {}
        for index in moved:
            node = update.items[index].node
            for number in self._written_again(update, index, early):
                before, text = self._loss(statements, update.losses[number][1], node, parts)
                early[number] = update.saved.get((index, text)) or self.ctx.names.fresh("first_loss")
                lines += before if (index, text) in update.saved else [*before, f"{early[number]} = {text}"]
            lines += [f"{name} = {held}" for (at, held), name in update.saved.items() if at == index]
            lines += lead_comments(self.ctx.source, node)
            if index in update.slice.split:
                before, text = rendered(self.ctx, statements, update.slice.split[index], node)
                assert isinstance(node, ast.Assign)
                lines += [*before, f"{self.ctx.source.segment(node.targets[0])} = {text}"]
            else:
                lines += [line for line in converted(self.ctx, statements, node) if line.strip() != "pass"]
        for one in update.measures:
            before, text = rendered(self.ctx, statements, one.value, one.node)
            lines += [*before, f"{one.name} = {text}"]
            statements.renderer.put(one.value, Piece(one.name))
        losses = [
            ([], early[number]) if number in early else self._loss(statements, loss, update.items[i].node, parts)
            for number, (i, loss) in enumerate(update.losses)
        ]
        behind = [line for index in update.loops for line in self._behind(update.items[index].node, statements)]
        return StepBody(lines, losses, behind)

    def _written_again(self, update: Update, index: int, early: Container[int]) -> Iterator[int]:
        """The losses that were differentiated in front of an item, which gives another value to what they read."""
        given = self.flow.writes(update.items[index].node)
        for number, (at, loss) in enumerate(update.losses):
            if at < index and number not in early and given & self.flow.reads(loss):
                yield number

    def _behind(self, node: ast.stmt, statements: StatementRewriter) -> list[str]:
        return [*lead_comments(self.ctx.source, node), *converted(self.ctx, statements, node)]

    def _loss(
        self, statements: StatementRewriter, loss: ast.expr, place: ast.stmt, parts: Sequence[ast.AST]
    ) -> tuple[list[str], str]:
        """A loss as a number: PyTorch also takes an array of one, as ``torch.zeros(1)`` that losses are added to."""
        before, text = rendered(self.ctx, statements, loss, place)
        return before, f"{bracket(Piece(text), ATOM)}.squeeze()" if LossShapes(self.ctx.inference, parts).may_be_array(
            loss
        ) else text

    def _draws(self, body: StepBody, inputs: dict[str, Input], finder: Inputs) -> None:
        """Pass the ``nnx.Rngs`` that the moved code draws from."""
        if body.mentions("rngs") and "rngs" not in inputs:
            inputs["rngs"] = Input("rngs", "rngs", "module")
        if re.search(r"\bself\.rngs\b", body.text):
            raise Refused("The loss draws random numbers from the module itself.")

    def _clip(
        self, clip: StepCall, update: Update, finder: Inputs, inputs: dict[str, Input], statements: StatementRewriter
    ) -> tuple[StepCall, list[str]]:
        """A clipping with its arguments; what they are made from is passed to the step too."""
        given = limits(clip)
        self._limits(given, finder, inputs)
        return clip, [rendered(self.ctx, statements, node, clip.node)[1] for node in given]

    def _limits(self, given: Sequence[ast.expr], finder: Inputs, inputs: dict[str, Input]) -> None:
        """Have a step take what some numbers are made from that the loss isn't computed with."""
        target = finder.of(given, ())
        for text, one in target.items():
            one.kind = "limit"
            inputs.setdefault(text, one)
        renamed([*target.values()], given, self.ctx)


def _prints(node: ast.AST) -> bool:
    """Whether some code prints."""
    return any(map(is_print, symbols.walk(node)))


def renamed(inputs: Sequence[Input], parts: Sequence[ast.AST], ctx: Context) -> None:
    """``self.model`` is ``model`` inside the step."""
    texts = {i.text: i.name for i in inputs if i.text != i.name}
    for part in parts if texts else ():
        for node in symbols.walk(part):
            if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in texts:
                ctx.scope.renamed[node] = texts[ast.unparse(node)]
