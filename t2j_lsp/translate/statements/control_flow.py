"""Conditions, loops, ``with`` and ``try``: their headers and the blocks in them."""

from __future__ import annotations

import ast
from collections.abc import Callable

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.alike_branches import recomputes, say_the_same
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.copying import Headers, children
from t2j_lsp.translate.expressions.fold import fold
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.expressions.tensor_code import TensorCode
from t2j_lsp.translate.expressions.truth import Truth
from t2j_lsp.translate.rule.contexts import context_name
from t2j_lsp.translate.rule.facts import UNKNOWN, Object, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import NOT, Piece, bracket

from .context_choices import ChosenContext, ContextChoices
from .error_handlers import ErrorHandlers
from .module_loops import ModuleLoops
from .no_gradient import NO_GRAD, NoGradient

_NO_FLAG = "JAX arrays carry no such flag: what is differentiated is said where the gradient is taken."

TRANSPARENT = names_with(Trait.TRANSPARENT)
SWITCHES = names_with(Trait.GRADIENT_SWITCH)
DEVICE_TESTS = names_with(Trait.DEVICE_TEST)
_WITH_EFFECT = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Subscript)
"""What a test that goes may not hold: what may do something, or fail."""


class ControlFlow:
    """Statements that hold other statements."""

    def __init__(
        self,
        context: Context,
        statements: StatementRewriter,
        header: Headers,
        loops: ModuleLoops,
        no_gradient: NoGradient,
        choices: ContextChoices,
        code: TensorCode,
    ) -> None:
        self.ctx = context
        self.statements = statements
        self.header = header
        self.loops = loops
        self.no_gradient = no_gradient
        self.choices = choices
        self.truth = Truth(context, code)

    def condition(self, node: ast.If) -> bool:
        """``if``: one branch of it, where the condition is known."""
        known = fold(node.test, self.ctx.inference)
        if known is not None and self._take_branch(node, node.body if known else node.orelse):
            return True
        if say_the_same(node, self.ctx.inference):
            said = node.body if recomputes(node.body, self.ctx.inference) else node.orelse  # its rule has a note
            if self._take_branch(node, said):
                return True
        self.truth.condition(node.test)
        self.header.expression(node, "test", node.test)
        self.statements.block(node.body)
        self.statements.block(node.orelse)
        if is_left_empty(self.ctx, node):
            self.ctx.edits.delete(node)
        return True

    def assertion(self, node: ast.Assert) -> bool:
        """``assert``, whose parts are rewritten like others'; one about gradients' flags goes, and one that holds."""
        if _asks_for_flag(node.test, self.ctx.fact):
            self.ctx.report.note(node, "torch.Tensor.requires_grad", "note", _NO_FLAG)
            self.ctx.edits.delete(node)
            self.ctx.report.count_converted()
            return True
        if fold(node.test, self.ctx.inference) is True:
            self.ctx.edits.delete(node)
            self.ctx.report.count_converted()
            return True
        self.truth.condition(node.test)
        return False

    def while_loop(self, node: ast.While) -> bool:
        """``while``."""
        self.truth.condition(node.test)
        self.header.expressions(node)
        self.statements.block(node.body)
        self.statements.block(node.orelse)
        return True

    def for_loop(self, node: ast.For | ast.AsyncFor) -> bool:
        """``for``: over a module's parts, or over anything."""
        if all(_asks_gradients(s, self.ctx.fact) for s in node.body) and not node.orelse:
            self.ctx.edits.delete(node)
            self.ctx.report.count_converted()
            return True
        if not self.loops.walks(node):
            self.header.expressions(node)
        self.statements.block(node.body)
        self.statements.block(node.orelse)
        return True

    def with_block(self, node: ast.With | ast.AsyncWith) -> bool:
        """``with``, which goes where JAX needs none."""
        if (choice := self.choices.chosen.get(node)) is not None:
            self._under_choice(node, choice)
            return True
        names = [self._context_name(item) for item in node.items]
        if all(name in NO_GRAD or name in TRANSPARENT or name in SWITCHES for name in names) and (
            SWITCHES.isdisjoint(names) or self._holds_step(node)
        ):
            if any(name in NO_GRAD for name in names):
                self.no_gradient.enter_block(node)
            if node.body[0].lineno > node.lineno:
                self.statements.unwrap(node, node.body)
            else:
                span = self.ctx.source.span
                self.ctx.edits.add(span(node)[0], span(node.body[0])[0], "")
                self.statements.block(node.body)
            if any(name in NO_GRAD for name in names):
                self.no_gradient.leave_block(node)
            return True
        for parent, field, child in children(node):
            if isinstance(parent, ast.withitem) and self._is_device(parent):
                jax, device = self.statements.renderer.need("jax"), self.statements.renderer.argument(child).text
                self.ctx.edits.replace(child, f"{jax}.default_device({device})")
            else:
                self.header.expression(parent, field, child)
        self.statements.block(node.body)
        return True

    def _is_device(self, item: ast.withitem) -> bool:
        """``with torch.device("cpu"):``, where what is made without a device is on that one."""
        fact = self.ctx.fact(item.context_expr)
        return isinstance(fact, Object) and fact.kind == "device" and item.optional_vars is None

    def _under_choice(self, node: ast.With | ast.AsyncWith, choice: ChosenContext) -> None:
        """A block under a context that a condition chooses."""
        self.statements.unwrap(node, node.body)
        if choice.names:
            test = self.statements.renderer.render(choice.test)
            condition = negated(test) if choice.otherwise else test.text
            stop = f"{self.statements.renderer.need('jax')}.lax.stop_gradient"
            self.ctx.edits.insert_after(node.body[-1], self.choices.lines(choice, condition, stop))

    def try_block(self, node: ast.Try) -> bool:
        """``try``, its handlers first."""
        ErrorHandlers(self.ctx).check(node)
        for handler in node.handlers:
            if handler.type is not None:
                self.header.expression(handler, "type", handler.type)
            self.statements.block(handler.body)
        self.statements.block(node.body)
        self.statements.block(node.orelse)
        self.statements.block(node.finalbody)
        return True

    def match_block(self, node: ast.Match) -> bool:
        """``match``: its subject and the blocks; patterns stay."""
        self.header.expression(node, "subject", node.subject)
        for case in node.cases:
            self.statements.block(case.body)
        return True

    def _take_branch(self, node: ast.If, body: list[ast.stmt]) -> bool:
        """Keep one branch of a condition whose value is known; whether that could be done."""
        source = self.ctx.source
        if source.text.startswith("elif", source.span(node)[0]) or not self.ctx.source.starts_line(node):
            return False
        if not body:
            self.ctx.edits.delete(node)
            return True
        if body[0].lineno == node.lineno or (
            body is node.orelse and source.text.startswith("elif", source.span(body[0])[0])
        ):
            return False
        self.statements.unwrap(node, body)
        return True

    def _holds_step(self, node: ast.With | ast.AsyncWith) -> bool:
        """Whether a train step is made in a block, which alone takes gradients there: none is left to switch off."""
        given = [n for item in node.items for n in symbols.walk(item.context_expr) if isinstance(n, ast.Call)]
        steps = self.ctx.plan.train_steps
        return len(given) == len(node.items) and any(isinstance(n, ast.stmt) and n in steps for n in symbols.walk(node))

    def _context_name(self, item: ast.withitem) -> str:
        expression = item.context_expr
        fact = self.ctx.fact(expression.func if isinstance(expression, ast.Call) else expression)
        return context_name(fact, expression) if item.optional_vars is None else ""


def negated(test: Piece) -> str:
    """The opposite of a condition."""
    if test.text.startswith("not ") and test.precedence == NOT:
        return test.text.removeprefix("not ")
    return f"not {bracket(test, NOT)}"


def _asks_for_flag(node: ast.expr, fact: Callable[[ast.AST], object]) -> bool:
    """``not target.requires_grad`` of an array."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node = node.operand
    return isinstance(node, ast.Attribute) and node.attr == "requires_grad" and isinstance(fact(node.value), Tensor)


def _asks_gradients(node: ast.stmt, fact: Callable[[ast.AST], object]) -> bool:
    """``p.requires_grad = True`` of an array: a flag, where JAX is told by what to differentiate."""
    match node:
        case (
            ast.Assign(targets=[ast.Attribute(attr="requires_grad", value=owner)], value=ast.Constant(value=True))
            | ast.Expr(value=ast.Call(func=ast.Attribute(attr="requires_grad_", value=owner), args=[], keywords=[]))
        ):
            held = fact(owner)
            return isinstance(held, Tensor) and not held.variable
    return False


def is_left_empty(ctx: Context, node: ast.If) -> bool:
    """Whether nothing is left of a condition but a test that does nothing: ``if cuda: net.cuda()``."""
    source = ctx.source
    starts = not source.text.startswith("elif", source.span(node)[0]) and source.starts_line(node)
    return starts and _holds_nothing(ctx, node)


def _holds_nothing(ctx: Context, node: ast.If) -> bool:
    """Whether all branches of a condition are empty, and no test does anything."""
    for block in filter(None, (node.body, node.orelse)):
        further = block[0] if len(block) == 1 and isinstance(block[0], ast.If) else None
        if ctx.edits.emptied.isdisjoint(block) and (further is None or not _holds_nothing(ctx, further)):
            return False
    return does_nothing(ctx, node)


def does_nothing(ctx: Context, node: ast.If) -> bool:
    """Whether the test of a condition, and those of its ``elif``, only ask."""
    asked = [n for n in symbols.walk(node.test) if isinstance(n, _WITH_EFFECT)]
    facts = [ctx.fact(n.func) if isinstance(n, ast.Call) else UNKNOWN for n in asked]
    further = [one for one in node.orelse if len(node.orelse) == 1 and isinstance(one, ast.If)]
    asks = all(isinstance(fact, Qual) and fact.name in DEVICE_TESTS for fact in facts)
    return asks and all(does_nothing(ctx, one) for one in further)
