"""Loops that update tensors by their gradients without an optimizer: what one is, and the new value that it gives."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.inference.call_sites import reached_functions
from t2j_lsp.translate.rule.pieces import Piece, bracket
from t2j_lsp.translate.source.positions import position
from t2j_lsp.translate.training.program.gradient_forms import CHANGES, SIGNS, gradient_name, is_name
from t2j_lsp.translate.training.program.objects import Objects
from t2j_lsp.translate.training.program.step_calls import Phase, Refused
from t2j_lsp.translate.training.program.text import rendered
from t2j_lsp.translate.training.program.update_functions import UpdateCall

from .accumulated import AccumulatedTraining


@dataclass
class HandStep:
    """``for p in params: p -= lr * p.grad``, and whether it clears the gradients too."""

    place: ast.stmt
    """The loop, or the call of the function that it stands in."""
    node: ast.For
    name: str
    walked: ast.expr
    """The list of tensors, or the module whose parameters these are."""
    change: ast.stmt | None
    """The statement that gives ``p`` a new value; None if the loop only clears gradients or asks for them."""
    clears: bool
    call: UpdateCall | None = None

    @property
    def gradient_name(self) -> str:
        """What the gradient of ``p`` is called."""
        taken = {n.id for n in symbols.walk(self.node) if isinstance(n, ast.Name)}
        return gradient_name(taken)


def changed(ctx: Context, step: HandStep, statements: StatementRewriter) -> str:
    """The new value of ``p``, of ``p`` and ``g``."""
    g, name, change = step.gradient_name, step.name, step.change
    renderer = statements.renderer
    for node in symbols.walk(step.node):
        if isinstance(node, ast.Attribute) and is_name(node.value, name):
            if node.attr == "grad":
                renderer.put(node, Piece(g))
            elif node.attr == "data":
                renderer.put(node, Piece(name))
        if isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.value, ast.Attribute):
            if node.value.attr == "grad" and is_name(node.value.value, name):
                renderer.put(node, Piece(g))
    match change:
        case ast.AugAssign(op=op, value=value):
            return _operation(ctx, change, SIGNS[type(op)], name, value, statements)
        case ast.Assign(value=value):
            return rendered(ctx, statements, value, change)[1]
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr), args=[*before, value], keywords=keywords)):
            sign = CHANGES[attr]
            for factor in (*before, *(keyword.value for keyword in keywords)):
                if isinstance(factor, ast.UnaryOp) and isinstance(factor.op, ast.USub):
                    sign, factor = "-" if sign == "+" else "+", factor.operand
                scale = bracket(Piece(rendered(ctx, statements, factor, change)[1], 12), 12)
                return f"{name} {sign} {scale} * {bracket(renderer.render(value), 12)}"
            return _operation(ctx, change, sign, name, value, statements)
    raise AssertionError(ast.unparse(step.node))


def write_out_lists(
    objects: Objects,
    one: AccumulatedTraining,
    phase: Phase,
    lists: Sequence[HandStep],
    names_of: Callable[[ast.expr], list[str] | None],
) -> None:
    """Write ``[w, b]`` where a loss reads their list, ``sum(p.square().sum() for p in params)``: the list is no leaf.

    Raises Refused where a function that the loss calls reads it.
    """
    source, loops = objects.ctx.source, {n for step in lists for n in symbols.walk(step.place)}
    last = position(one.items[phase.backs[-1]].node)
    for step in lists:
        walked, names = step.walked, names_of(step.walked)
        if not isinstance(walked, ast.Name) or not names or names == [walked.id]:
            continue
        home, scope = objects.home(walked.id, objects.scope(walked)), objects.scope(step.place)
        reached = {info.node for info in reached_functions(objects.ctx.inference, one.block)}
        for node in objects.named(walked.id, home):
            if isinstance(node.ctx, ast.Store) or node in loops:
                continue
            reading = objects.scope(node)
            if reading.node in reached:
                raise Refused(f"A function that is called here reads {walked.id}: pass it {', '.join(names)}.")
            inside = any(at in one.block for at in symbols.ancestors(node, source.parents))
            if reading == scope and inside and position(node) < last:
                text = f"[{', '.join(names)}]"
                objects.ctx.plan.on_expression(node, lambda renderer, text=text: Piece(text))  # type: ignore[misc]


def _operation(
    ctx: Context, place: ast.stmt, sign: str, name: str, value: ast.expr, statements: StatementRewriter
) -> str:
    text = rendered(ctx, statements, value, place)[1]
    simple = isinstance(value, ast.Name | ast.Constant | ast.Attribute | ast.Call)
    product = sign in "+-" and isinstance(value, ast.BinOp) and not isinstance(value.op, ast.Add | ast.Sub)
    return f"{name} {sign} {text}" if simple or product else f"{name} {sign} ({text})"
