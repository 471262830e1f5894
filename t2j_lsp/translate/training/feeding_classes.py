"""Classes of a file that are no data sets and feed its data pipeline: a sampler of one's own, ``__iter__`` and all."""

from __future__ import annotations

import ast
from collections.abc import Collection

from t2j_lsp import symbols
from t2j_lsp.symbols import with_ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.facts import Class, ClassInfo, Instance, Qual
from t2j_lsp.translate.rule.names import is_torch


def feeds_alone(ctx: Context, info: ClassInfo, kept: Collection[ast.AST]) -> bool:
    """Whether a class computes with PyTorch, and code that doesn't stay in PyTorch asks nothing of its instances."""
    if info.is_module or info.external or info.torch_bases or info.node not in ctx.inference.classes:
        return False
    facts = (ctx.fact(node) for node in symbols.walk(info.node))
    if not any(isinstance(fact, Qual) and is_torch(fact.name) for fact in facts):
        return False
    for node in ctx.source.nodes:
        if isinstance(node, ast.Attribute) and isinstance(owner := ctx.fact(node.value), Instance):
            around = with_ancestors(node, ctx.source.parents)
            if owner.cls.info is info and not any(at is info.node or at in kept for at in around):
                return False
    return True


def makes_one(ctx: Context, statement: ast.stmt, kept: Collection[ast.AST]) -> bool:
    """Whether a statement makes an instance of a class that stays in PyTorch."""
    calls = (node for node in symbols.walk(statement) if isinstance(node, ast.Call))
    return any(isinstance(fact := ctx.fact(call.func), Class) and fact.info.node in kept for call in calls)
