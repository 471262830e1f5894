"""Seeds of what stays PyTorch: a loader that shuffles draws from PyTorch's generator, so its seed stays, too."""

from __future__ import annotations

import ast

from t2j_lsp.symbols import nearest
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.containers import imported_files
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.rngs import makes_rngs
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.training.program.kept_values import leave

_DRAWS, _SHUFFLES, _SEEDS = (names_with(one) for one in (Trait.KEPT_DRAW, Trait.SHUFFLES, Trait.SEED))


def plan_seeds(context: Context) -> None:
    """Keep the seeds of a file whose kept code draws. One that an earlier conversion has written stays as it is."""
    calls = [node for node in context.source.nodes if isinstance(node, ast.Call)]
    if not any(_draws(node, context) for node in calls) and not any(map(_shuffles, imported_files(context.inference))):
        return
    for node in context.source.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _name(node.value, context) in _SEEDS:
            if _is_followed_by_rngs(node, context) or _is_in_seeder(node, context):
                context.plan.kept.add(node)
                context.plan.on_statement(node, leave)
            elif context.source.starts_line(node):
                context.plan.seeds_torch.add(node)


def _name(call: ast.Call, context: Context) -> str | None:
    fact = context.fact(call.func)
    return fact.name if isinstance(fact, Qual) else None


def _shuffles(other: Inference) -> bool:
    """Whether a file that this one imports makes a loader that shuffles."""
    made = [(n, other.facts.get(n.func)) for n in other.source.nodes if isinstance(n, ast.Call)]
    return any(isinstance(fact, Qual) and _shuffling(node, fact.name) for node, fact in made)


def _shuffling(call: ast.Call, name: str | None) -> bool:
    shuffle = argument(call, 2, "shuffle") if name in _SHUFFLES else None
    return shuffle is not None and not (isinstance(shuffle, ast.Constant) and not shuffle.value)


def _is_in_seeder(node: ast.stmt, context: Context) -> bool:
    """Whether a seed is set in a function that is there for it: its caller makes the ``nnx.Rngs``."""
    function = nearest(ast.FunctionDef, node, context.source.parents)
    info = context.inference.functions.get(function) if function is not None else None
    return info is not None and info.is_seeder


def _draws(call: ast.Call, context: Context) -> bool:
    """Whether a call draws random numbers of PyTorch's, or makes what does."""
    name = _name(call, context)
    if name in _SHUFFLES:
        return _shuffling(call, name)
    if name in _DRAWS:
        return True
    rule = REGISTRY.get(name) if name is not None else None
    return rule is not None and rule.random and context.plan.keeps(call, context.source.parents)


def _is_followed_by_rngs(node: ast.stmt, context: Context) -> bool:
    block = context.source.block_of(node) or [node]
    return any(map(makes_rngs, block[block.index(node) + 1 :][:1]))
