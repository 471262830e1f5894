"""Gradients that add up over several backward passes: they live in a variable of the loop."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementHandler, StatementRewriter
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.training.program.allocations import Allocations
from t2j_lsp.translate.training.program.step_calls import Item, Phase, Reader, Refused, StepCall, limits
from t2j_lsp.translate.training.program.text import rendered

from .clip_lines import clip_lines
from .update import NOT_ZEROED, Update
from .updates import Updates

ELSEWHERE = "The optimizer's step isn't made in the function that computes the gradients."
UNKNOWN_OPTIMIZER = "What {} is isn't known here: its step may be an optimizer's, and may be another's."
BETWEEN_CALLS = "Gradients add up over several calls of the function; in JAX they are values for its caller to hold."
LEFT_OVER = (
    "Gradients that are still waiting for a step when the function returns are dropped; PyTorch adds to them in the"
    " next call. Make a step behind the last batch, or zero the gradients in front of the loop, to have the same."
)
STORED = "It works on the gradients in .grad; in JAX they are values, which nnx.value_and_grad returns."


@dataclass
class AccumulatedTraining:
    """The training code of one block."""

    block: Sequence[ast.stmt]
    items: list[Item]
    updates: list[Update] = field(default_factory=list)


class AddedGradients:
    """The gradients of a scope that several backward passes add to."""

    def __init__(
        self, context: Context, allocations: Allocations, body: Sequence[ast.stmt], reader: Reader, used: set[ast.stmt]
    ) -> None:
        self.ctx = context
        self.allocations = allocations
        self.body = body
        self.reader = reader
        self.used = used
        """Statements that an update has taken up."""

    def add_up(self, one: AccumulatedTraining, updates: Updates, phase: Phase, reason: str) -> None:
        """An update whose gradients live in a variable, between the backward pass, clipping, step and zeroing."""
        step_calls = self._step_calls()
        steps = [p for p in step_calls if p.kind == "step"]
        zeros = [p for p in step_calls if p.kind == "zero"]
        if not steps and reason == ELSEWHERE and (unknown := self._unknown_optimizer()) is not None:
            raise Refused(UNKNOWN_OPTIMIZER.format(unknown))
        if not steps or len({ast.unparse(p.subject) for p in steps}) != 1:
            raise Refused(reason)
        if not zeros:
            raise Refused(NOT_ZEROED if reason == ELSEWHERE else reason)
        root = next((r for r in loops(self.body) if one.items[0].node in set(symbols.walk(r))), None)
        zeroed = any(self._comes_first(zero.node, one.items[0].node) for zero in zeros)
        cleared = self._cleared_each_time(one, phase, step_calls)
        if root is None and not zeroed and not cleared:
            raise Refused(BETWEEN_CALLS)
        grads = self.ctx.names.fresh("grads")
        update = updates.accumulated(one.items, phase, steps[0].subject, grads, bool(cleared))
        optimized = update.optimized[0]
        for zero in zeros:
            if not updates.updated.zeroes(zero, [optimized]):
                raise Refused(reason)
        for clip in [p for p in step_calls if p.kind == "clip"]:
            updates.updated.clip_target(clip, [optimized])
        if not zeroed and not cleared:
            updates.updated.check_alone(optimized)
            updates.elsewhere.check_one(optimized, {one.items[i].node for i in phase.backs})
        one.updates.append(update)
        update.edited = any(p.edit is not None for p in step_calls)
        parts = [p for p in step_calls if p not in cleared]
        starts = root is not None and not zeroed and not cleared
        first = root if starts else self._first([p.node for p in parts if p.kind == "zero"])
        again = [p.node for p in parts if p.kind == "zero" and p.node is not first]
        if first is not None and again and all(self._comes_behind(node, first) for node in again):
            update.zeros = self.ctx.names.fresh("zeros")
        self._handle_parts(parts, update, first)
        if root is not None and starts:
            left = steps[0].node if self._leaves_gradients(steps[0]) else None
            self._start(root, update, left)

    def _cleared_each_time(
        self, one: AccumulatedTraining, phase: Phase, step_calls: Sequence[StepCall]
    ) -> list[StepCall]:
        """What zeroes the gradients whenever the block is run, in front of its only backward pass: none add up then.

        Empty, too, where a step may use gradients before that, or where some are cleared between the two.
        """
        back = one.items[phase.backs[0]].node
        parts = [(i.step_call, i.condition is not None) for i in one.items if i.step_call is not None]
        zeros = [p for p, conditional in parts if p.kind == "zero" and not conditional]
        early = [p for p in zeros if p.node.lineno <= back.lineno]
        used = [p for p in step_calls if p.kind in ("step", "clip")]
        inside = {n for s in one.block for n in symbols.walk(s)}
        if not early or len(phase.backs) > 1 or any(p.node not in inside or p.node.lineno < back.lineno for p in used):
            return []
        last = max(p.node.lineno for p in used)
        if any(back.lineno < p.node.lineno <= last for p in zeros):
            return []
        return zeros

    def _unknown_optimizer(self) -> str | None:
        """What the scope calls a ``step`` of without arguments, which is none of a part of training that is known."""
        for block in symbols.blocks(self.body):
            for node in block:
                match node:
                    case ast.Expr(value=ast.Call(func=ast.Attribute(value=held, attr="step"), args=[], keywords=[])):
                        return ast.unparse(held)
        return None

    def reads_gradients(self) -> bool:
        """Whether the scope uses ``p.grad`` for more than clearing it, or changing it in a loop."""
        known = [p for p in self._step_calls() if p.kind == "zero" or p.edit is not None]
        cleared = {i for p in known for i in symbols.walk(p.node)}
        expressions = [i for block in symbols.blocks(self.body) for node in block for i in own_expressions(node)]
        return any(
            isinstance(n, ast.Attribute)
            and n.attr == "grad"
            and n not in cleared
            and not isinstance(self.ctx.fact(n), Qual)
            for n in expressions
        )

    def _step_calls(self) -> list[StepCall]:
        """Every part of a training step in the scope. Raises Refused."""
        out = []
        for block in symbols.blocks(self.body):
            for node in block:
                step_call = self.reader.read(node)
                if step_call is not None:
                    out.append(step_call)
        return out

    def _first(self, zeros: Sequence[ast.stmt]) -> ast.stmt | None:
        """What zeroes the gradients in front of all else that does."""
        return next((zero for zero in zeros if all(z is zero or self._comes_first(zero, z) for z in zeros)), None)

    def _comes_behind(self, node: ast.stmt, first: ast.stmt) -> bool:
        return node in set(symbols.walk(first)) or self._comes_first(first, node)

    def _handle_parts(self, step_calls: list[StepCall], update: Update, first: ast.stmt | None) -> None:
        """Zeroing, clipping and stepping as operations on the variable that holds the gradients."""
        for step_call in step_calls:
            if not self.ctx.source.starts_line(step_call.node):
                raise Refused("Several statements of the loop stand on one line.")
            if step_call.kind != "backward":
                again = step_call.node is not first
                self.ctx.plan.on_statement(step_call.node, self._part(step_call, update, again))
                self.used.add(step_call.node)

    def _part(self, step_call: StepCall, update: Update, again: bool) -> StatementHandler:
        optimizer, module, grads = update.optimized[0].text, update.optimized[0].modules[0], update.grads

        def handler(statements: StatementRewriter) -> None:
            need = statements.renderer.need
            self.ctx.report.count_converted()
            match step_call.kind:
                case "zero":
                    lines = [f"{grads} = {update.zeros}" if update.zeros and again else self._zeros(update, need)]
                case "clip":
                    lines = clipped(self.ctx, step_call, grads, module, statements)
                case "step" if update.arrays:
                    bound = need(self.allocations.helper("bound_jit", module))
                    lines = [f"{bound}({need('apply_step')}, {module}, {optimizer})({grads})"]
                case "step":
                    lines = [
                        f"{need(self.allocations.helper('apply_gradients', module))}({module}, {optimizer}, {grads})"
                    ]
                case _:
                    self.ctx.edits.delete(step_call.node)
                    return
            self.ctx.edits.insert_before(step_call.node, lines[:-1])
            self.ctx.edits.replace(step_call.node, lines[-1])

        return handler

    def _zeros(self, update: Update, need: Callable[[str], str]) -> str:
        """The statement that gives gradients what they begin with."""
        module = update.optimized[0].modules[0]
        if update.arrays:
            zeros = f"{need(self.allocations.helper('bound_jit', module))}({need('zero_step')}, {module})()"
        else:
            zeros = f"{need('zero_gradients')}({module})"
        return " = ".join(filter(None, [update.grads, update.zeros, zeros]))

    def _leaves_gradients(self, step: StepCall) -> bool:
        """Whether a function may be called again with gradients that no step has used: it is given its optimizer, and
        makes steps at some batches of which the last one needs to be none.
        """
        if self.body is self.ctx.source.tree.body:
            return False
        for block in symbols.blocks(self.body):
            for node in block:
                if isinstance(node, ast.Assign) and ast.unparse(step.subject) in map(ast.unparse, node.targets):
                    return False
        around = ancestors(step.node, self.ctx.source.parents)
        tests = [node.test for node in around if isinstance(node, ast.If)]
        return not any(isinstance(n, ast.Or) for test in tests for n in symbols.walk(test))

    def _start(self, root: ast.stmt, update: Update, left: ast.stmt | None) -> None:
        """Gradients start at zero in front of the loop. ``left`` is a step that some may still wait for behind it."""
        inner = self.ctx.plan.statement_handlers.get(root)

        def handler(statements: StatementRewriter) -> None:
            if left is not None:
                self.ctx.report.note(left, "torch.optim.Optimizer", "note", LEFT_OVER)
            zeros = self._zeros(update, statements.renderer.need)
            self.ctx.edits.insert_before(root, [zeros], priority=-2)
            if inner is not None:
                inner(statements)
            else:
                statements.dispatch(root)

        self.ctx.plan.on_statement(root, handler)

    def _comes_first(self, zero: ast.stmt, node: ast.stmt) -> bool:
        """Whether a statement is always run in front of another: it stands above it, or above a loop around it."""
        block = self.ctx.source.block_of(zero) or []
        place: ast.AST = node
        while place not in block:
            if place not in self.ctx.source.parents:
                return False
            place = self.ctx.source.parents[place]
        return any(s is place for s in block[block.index(zero) + 1 :])


def clipped(ctx: Context, clip: StepCall, grads: str, module: str, statements: StatementRewriter) -> list[str]:
    """The lines that clip the gradients in a variable."""
    arguments = [rendered(ctx, statements, node, clip.node)[1] for node in limits(clip)]
    return clip_lines(ctx, clip, arguments, grads, module, statements.renderer.need)


def own_expressions(node: ast.stmt) -> list[ast.AST]:
    """The expressions of a statement, without those of the statements inside it."""
    out: list[ast.AST] = []
    stack: list[ast.AST] = [c for c in symbols.children(node) if not isinstance(c, ast.stmt)]
    while stack:
        one = stack.pop()
        out.append(one)
        stack += [c for c in symbols.children(one) if not isinstance(c, ast.stmt | ast.Lambda)]
    return out


def loops(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The outermost loops of a scope."""
    out: list[ast.stmt] = []
    stack = list(body)[::-1]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.For | ast.While | ast.AsyncFor):
            out.append(node)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for name in ("body", "orelse", "finalbody"):
                stack += list(getattr(node, name, []))[::-1]
    return out
