"""Steps with a closure: ``optimizer.step(closure)``, where the closure computes the loss and its gradients.

PyTorch leaves the gradients in the parameters. In JAX the closure gives them back with the loss: to the optimizer that
evaluates it several times for one step, or to the code that makes the update.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer, StatementRewriter
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Object
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.training.program.allocations import Allocations
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.step_calls import CLOSURE, Phase, Refused
from t2j_lsp.translate.training.program.text import rendered

from .accumulated import AccumulatedTraining
from .stored_gradients import clip_stored
from .update import NOT_ZEROED, Optimized
from .updates import Updates

OTHER_USES = "The closure is used for more than an optimizer's steps: in JAX it gives the loss and its gradients."
RETURNS = "A closure whose last statement doesn't return the loss has no plain form."


class Closures:
    """The functions of a file that are handed to optimizers' steps."""

    def __init__(self, context: Context) -> None:
        self.ctx = context

    def calls(self, info: FunctionInfo | None) -> Sequence[ast.Call]:
        """The steps that take a function as their closure."""
        return self._calls.get(info.node, ()) if info is not None else ()

    @cached_property
    def _calls(self) -> dict[ast.AST, list[ast.Call]]:
        calls: dict[ast.AST, list[ast.Call]] = {}
        for node in self.ctx.source.nodes:
            closure = self._closure(node)
            info = called_function(self.ctx.fact(closure)) if closure is not None else None
            if info is not None and isinstance(node, ast.Call):
                calls.setdefault(info.node, []).append(node)
        return calls

    def _closure(self, node: ast.AST) -> ast.expr | None:
        match node:
            case (
                ast.Call(func=ast.Attribute(attr="step", value=owner), args=[ast.Name() as closure], keywords=[])
                | ast.Call(
                    func=ast.Attribute(attr="step", value=owner),
                    args=[],
                    keywords=[ast.keyword(arg="closure", value=ast.Name() as closure)],
                )
            ):
                fact = self.ctx.fact(owner)
                return closure if isinstance(fact, Object) and fact.kind == "optimizer" else None
        return None


class ClosureGradients:
    """The gradients that a closure computes."""

    def __init__(
        self,
        context: Context,
        objects: Objects,
        scope: VariableScope,
        updates: Updates,
        calls: Sequence[ast.Call],
    ) -> None:
        assert scope.function is not None
        self.ctx = context
        self.objects = objects
        self.scope = scope
        self.function = scope.function.node
        self.updates = updates
        self.calls = calls

    def plan(self, one: AccumulatedTraining, phase: Phase) -> None:
        """A closure that gives back loss and gradients, and the steps that take it. Raises Refused."""
        returned = self._returned(one)
        self._check_uses()
        optimized = self._optimized(one, phase)
        zeros = [i.step_call for i in one.items[: phase.backs[0]]]
        if not any(self.updates.updated.zeroes(step_call, [optimized]) for step_call in zeros):
            raise Refused(NOT_ZEROED)
        grads = self.ctx.names.fresh("grads")
        update = self.updates.stored(one.items, phase, optimized, grads)
        one.updates.append(update)
        clip_stored(self.ctx, self.updates, one, update)
        part = self._part(optimized)
        self.ctx.plan.on_statement(returned, lambda statements: self._return(returned, grads + part, statements))
        annotation = self.function.returns
        if annotation is not None:
            self.ctx.plan.on_expression(annotation, _annotation)
        for call in self.calls:
            self._step(call, grads)

    # --- what is understood ---------------------------------------------------------------------------------------

    def _returned(self, one: AccumulatedTraining) -> ast.Return:
        """The closure's only ``return``, behind the backward pass. Raises Refused."""
        returns = [n for n in symbols.walk(self.function) if isinstance(n, ast.Return)]
        last = self.function.body[-1]
        if len(returns) != 1 or one.block is not self.function.body or not self.ctx.source.starts_line(last):
            raise Refused(RETURNS)
        if not isinstance(last, ast.Return) or last.value is None:
            raise Refused(RETURNS)
        return last

    def _check_uses(self) -> None:
        """Raises Refused if the closure is called by anything else."""
        calls = set(self.calls)
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Name) and node.id == self.function.name and isinstance(node.ctx, ast.Load):
                call = self.ctx.source.parents.get(node)
                if isinstance(call, ast.keyword):
                    call = self.ctx.source.parents.get(call)
                if called_function(self.ctx.fact(node)) is self.scope.function and call not in calls:
                    raise Refused(OTHER_USES)

    def _optimized(self, one: AccumulatedTraining, phase: Phase) -> Optimized:
        """The optimizer of all steps that take the closure. Raises Refused."""
        slicer = self.updates.updated.slicer(one.items)
        losses = self.updates.losses(one.items, phase)
        optimized = [self.updates.updated.optimized(_optimizer(call), slicer, losses) for call in self.calls]
        if any(o.modules != optimized[0].modules for o in optimized):
            raise Refused(CLOSURE)
        return optimized[0]

    def _part(self, optimized: Optimized) -> str:
        """Where the optimizer's gradients are among those that the closure computes: ``.head``. Raises Refused."""
        parts = [module.partition(".") for module in optimized.modules if not module.startswith("self.")]
        inner = [rest for _, dot, rest in parts if dot]
        if not inner:
            return ""
        if len(optimized.modules) > 1:
            raise Refused(CLOSURE)
        return f".{inner[0]}"

    def _evaluates_several_times(self, call: ast.Call) -> bool:
        """Whether the optimizer of a step calls the closure itself. Raises Refused if that can't be told."""
        made = self.objects.constructors(_optimizer(call), self.objects.scope(call))
        facts = [self.ctx.fact(m) for m in made or ()]
        several = {isinstance(f, Object) and f.name in names_with(Trait.EVALUATES_CLOSURE) for f in facts}
        if len(several) != 1:
            raise Refused(CLOSURE)
        return several.pop()

    # --- writing --------------------------------------------------------------------------------------------------

    def _return(self, node: ast.Return, grads: str, statements: StatementRewriter) -> None:
        assert node.value is not None
        before, text = rendered(self.ctx, statements, node.value, node)
        self.ctx.edits.insert_before(node, before)
        self.ctx.edits.replace(node, f"return {text}, {grads}")

    def _step(self, call: ast.Call, grads: str) -> None:
        """What becomes of a step with the closure. Raises Refused."""
        if self._evaluates_several_times(call):
            self.ctx.plan.kept.add(call.func)
            self.ctx.plan.on_expression(call, lambda renderer: self._kept(call))
            return
        statement = self.ctx.source.parents.get(call)
        match statement:
            case ast.Expr():
                target = "_"
            case ast.Assign(targets=[ast.Name() | ast.Attribute() as name]):
                target = ast.unparse(name)
            case _:
                raise Refused(CLOSURE)
        modules = self.objects.modules(_optimizer(call), self.objects.scope(call))
        if modules is None or not self.ctx.source.starts_line(statement):
            raise Refused(CLOSURE)
        module = modules[0] if len(modules) == 1 else f"({', '.join(modules)})"

        def write(statements: StatementRewriter) -> None:
            named = Allocations(self.objects).helper("apply_gradients", *modules)
            update = statements.renderer.need(named)
            lines = [f"{target}, {grads} = {self.function.name}()"]
            self.ctx.edits.insert_before(statement, lines)
            self.ctx.edits.replace(statement, f"{update}({module}, {ast.unparse(_optimizer(call))}, {grads})")
            self.ctx.report.count_converted()

        self.ctx.plan.on_statement(statement, write)

    def _kept(self, call: ast.Call) -> Piece:
        self.ctx.report.count_converted()
        return Piece(self.ctx.source.segment(call))


def _optimizer(call: ast.Call) -> ast.expr:
    assert isinstance(call.func, ast.Attribute)
    return call.func.value


def _annotation(renderer: ExpressionRenderer) -> Piece:
    return Piece(f"tuple[{renderer.need('jax')}.Array, {renderer.need('nnx')}.State]")
