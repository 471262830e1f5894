"""What a forward pass draws that two updates need, and that is written twice for it, is drawn once in front of both.

``fake = generator(torch.randn(n, latent))`` is computed for the discriminator, and once more in the generator's step,
where it has a gradient. Both must see the same noise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Function
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.training.program.passed import Input
from t2j_lsp.translate.training.program.slice import UpdateSlice
from t2j_lsp.translate.training.program.step_calls import Item, Refused
from t2j_lsp.translate.training.program.text import converted, rendered

from .update import Update

NOISE = "noise"


def draw_once(ctx: Context, statements: StatementRewriter, items: Sequence[Item], made: UpdateSlice) -> list[Input]:
    """Give every draw of the shared items a name, in a line in front of them; the step is passed what is returned."""
    drawn: list[Input] = []
    for index in made.shared:
        node = items[index].node
        for call in list(_draws(node, ctx.inference)):
            as_outside(ctx, statements, list(symbols.walk(call)))
            before, text = rendered(ctx, statements, call, node)
            name = ctx.names.fresh(NOISE)
            statements.renderer.put(call, Piece(name))
            made.drawn.setdefault(index, []).extend([*before, f"{name} = {text}"])
            drawn.append(Input(name, name, "array"))
    return drawn


def forward_outside(ctx: Context, statements: StatementRewriter, node: ast.stmt) -> list[str]:
    """The lines of a shared forward pass in front of the steps, where ``self.generator`` has no name of a step."""
    drawn = {inner for call in _draws(node, ctx.inference) for inner in symbols.walk(call)}
    as_outside(ctx, statements, [n for n in symbols.walk(node) if n not in drawn])
    return converted(ctx, statements, node)


def as_outside(ctx: Context, statements: StatementRewriter, nodes: Sequence[ast.AST]) -> None:
    """Have code that was given the names of a step rendered anew with those around it."""
    for node in nodes:
        if isinstance(node, ast.expr):
            ctx.scope.renamed.pop(node, None)
    statements.renderer.forget(nodes)


def draws_elsewhere(node: ast.AST, inference: Inference) -> bool:
    """Whether a statement calls a function of the file that draws, which would do so twice."""
    calls = (n for n in symbols.walk(node) if isinstance(n, ast.Call))
    return any(isinstance(f := inference.fact(c.func), Function) and f.info.takes_rngs for c in calls)


def _draws(node: ast.AST, inference: Inference) -> Iterator[ast.Call]:
    """The calls of a statement that draw random numbers, the outermost of each."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            fact = inference.fact(child.func)
            rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
            if rule is not None and rule.random:
                yield child
                continue
        yield from _draws(child, inference)


def check_shared(inference: Inference, updates: Sequence[Update]) -> None:
    """Raises Refused if a forward pass that two updates need can't be written twice."""
    for update in updates:
        modules = {m for o in update.optimized for m in o.modules}
        for index in update.slice.shared:
            node = update.items[index].node
            calls = [
                n for n in symbols.walk(node) if isinstance(n, ast.Call) and ast.unparse(n.func) in modules and n.args
            ]
            drawn = draws_elsewhere(node, inference)
            if len(calls) != 1 or not isinstance(node, ast.Assign) or drawn:
                raise Refused("A value of one update is used in another, and can't be computed twice surely.")
