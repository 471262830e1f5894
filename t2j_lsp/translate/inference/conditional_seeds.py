"""Functions of other files that seed the generator on some ways only: ``if seed is not None: torch.manual_seed(seed)``.

In their own file they turn out to need ``rngs`` when they are written; who calls them from another has to know as well.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.record import rule_of

from .file import Inference

_SEEDS = names_with(Trait.SEED)


def draws_unseeded(info: FunctionInfo, file: Inference) -> bool:
    """Whether a function that seeds the generator may draw from it before it has."""
    draws = [n for n in symbols.walk(info.node) if isinstance(n, ast.Call) and _draws(n, file)]
    if not draws:
        return not _always(info.node.body, file)
    return not all(_is_behind_seed(call, info, file) for call in draws)


def _draws(call: ast.Call, file: Inference) -> bool:
    fact = file.facts.get(call.func)
    if isinstance(fact, Function):
        return fact.info.takes_rngs or fact.info.draws or fact.info.builds
    rule = rule_of(fact) if isinstance(fact, Qual) else None
    return isinstance(fact, Qual) and (rule is not None and rule.random or fact.name in LAYERS)


def _is_behind_seed(call: ast.Call, info: FunctionInfo, file: Inference) -> bool:
    node: ast.AST | None = call
    while node is not None and node is not info.node:
        block = file.source.block_of(node) if isinstance(node, ast.stmt) else None
        if isinstance(node, ast.stmt) and block is not None and _always(block[: block.index(node)], file):
            return True
        node = file.source.parents.get(node)
    return False


def _always(block: Sequence[ast.stmt], file: Inference) -> bool:
    """Whether statements seed the generator, whichever way they are run through."""
    for node in block:
        match node:
            case ast.If() if _always(node.body, file) and _always(node.orelse, file):
                return True
            case ast.With() if _always(node.body, file):
                return True
            case ast.Expr(value=ast.Call() as call) | ast.Assign(value=ast.Call() as call):
                fact = file.facts.get(call.func)
                if isinstance(fact, Qual) and fact.name in _SEEDS or isinstance(fact, Function) and fact.info.is_seeder:
                    return True
    return False
