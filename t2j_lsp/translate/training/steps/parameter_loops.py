"""Loops over the parameters of a module right behind its step, which are compiled with it: ``p.data.clamp_(-c, c)``.

In Python every parameter would cost an operation of its own, more than a small model's step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.parsed_numbers import is_parsed_number
from t2j_lsp.translate.rule.facts import UNKNOWN, Scalar, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with

from .array_code import ArrayCode
from .composed_step import base_of
from .update import Update
from .updates import Updates


@dataclass
class ParameterLoops:
    """Looks for them in one scope."""

    ctx: Context
    updates: Updates
    code: ArrayCode

    def behind(self, update: Update) -> list[int]:
        """The items right behind an update that only write into the parameters of what it trained."""
        out: list[int] = []
        for index in range(update.last + 1, len(update.items)):
            item = update.items[index]
            if (
                item.step_call is not None
                and item.step_call.kind in ("zero", "rescale")
                or self._is_taken(update, index)
            ):
                continue
            if item.step_call is not None or item.condition is not None or item.inside:
                break
            if not all(self._is_part(update, one) for one in self._statements(item.node)):
                break
            out.append(index)
        return out

    def _is_taken(self, update: Update, index: int) -> bool:
        return index in update.slice.moved and index not in update.slice.shared

    def _statements(self, node: ast.stmt) -> Sequence[ast.stmt]:
        """What stands in a block without gradients, or the statement itself."""
        return node.body if isinstance(node, ast.With) and self.updates.reader.has_no_gradient(node) else [node]

    def _is_part(self, update: Update, node: ast.stmt) -> bool:
        """Whether a statement is such a loop, and computes the same behind the update in the step."""
        match node:
            case ast.For(
                target=ast.Name(id=name),
                iter=ast.Call(func=ast.Attribute(value=module, attr="parameters"), args=[], keywords=[]),
                orelse=[],
            ):
                return self._is_of(update, module) and self._writes_alone(update, node, name)
        return False

    def _is_of(self, update: Update, module: ast.expr) -> bool:
        """Whether a module is one that the update trains, or a part of it."""
        flow = self.updates.flow
        trained = {base_of(flow, one) for made in update.optimized for one in made.modules}
        plain = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context)
        return base_of(flow, ast.unparse(module)) in trained and all(isinstance(n, plain) for n in symbols.walk(module))

    def _writes_alone(self, update: Update, loop: ast.For, name: str) -> bool:
        flow = self.updates.flow
        moved = [update.items[i].node for i in (*update.slice.moved, *update.slice.delayed)]
        made = set[str]().union(*map(flow.writes, moved))
        used = made.union(*map(flow.reads, moved), *(flow.reads(loss) for _, loss in update.losses))
        read_later = self.updates.liveness.after.get(loop, set())
        if loop in self.ctx.plan.statement_handlers or name in used or name in read_later or name in update.live:
            return False
        given = [*limits(loop)]
        if not all(self._writes(one, name) for one in loop.body) or any(flow.reads(one) & made for one in given):
            return False
        return all(map(self._is_limit, given)) and self.updates.jittable.problem(loop) is None

    def _writes(self, node: ast.stmt, name: str) -> bool:
        """``p.data.clamp_(-c, c)``, and nothing random."""
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=written, attr=method)) as call) if method in _METHODS:
                held = written.value if isinstance(written, ast.Attribute) and written.attr == "data" else written
                arguments = [*call.args, *(k.value for k in call.keywords)]
                own = isinstance(held, ast.Name) and held.id == name
                others = (n for one in arguments for n in symbols.walk(one) if isinstance(n, ast.Name))
                return own and not self.code.draws(node) and all(one.id != name for one in others)
        return False

    def _is_limit(self, node: ast.expr) -> bool:
        """Whether an argument is a number or an array, so that the step may be given it."""
        match node:
            case ast.Constant(value=int() | float() | None):
                return True
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._is_limit(operand)
            case ast.Attribute() if is_parsed_number(self.ctx.source, node):
                return True
            case ast.Name() | ast.Attribute() if self.updates.flow.variable(node) is not None:
                fact = self.ctx.fact(node)
                return fact == Scalar("float") or isinstance(fact, Tensor) and not fact.variable or fact == UNKNOWN
        return False


_METHODS = names_with(Trait.ELEMENTWISE_IN_PLACE)


def limits(loop: ast.stmt) -> Iterator[ast.expr]:
    """The arguments of the calls in such a loop."""
    for call in symbols.walk(loop):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
            yield from (*call.args, *(k.value for k in call.keywords))
