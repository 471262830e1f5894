"""Classes of a file that are no data sets and feed its data pipeline: a sampler of one's own, ``__iter__`` and all."""

from __future__ import annotations

import ast
from collections.abc import Collection

from t2j_lsp import symbols
from t2j_lsp.symbols import with_ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, Instance
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.names import is_torch


def feeds_alone(ctx: Context, info: ClassInfo, kept: Collection[ast.AST]) -> bool:
    """Whether a class computes with PyTorch, code that stays has its instances, and no other code has.

    One that only makes a loader of its own (``self.train_loader = DataLoader(self.data)``) feeds none.
    """
    if info.is_module or info.external or info.torch_bases or info.node not in ctx.inference.classes:
        return False
    facts = (ctx.fact(node) for node in symbols.walk(info.node))
    if not any(isinstance(fact, Qual) and is_torch(fact.name) for fact in facts):
        return False
    feeds = False
    for node in ctx.source.nodes:
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            made = ctx.fact(node)
            if isinstance(made, Instance) and made.cls.info is info and not _is_measured(ctx, node):
                around = set(with_ancestors(node, ctx.source.parents))
                if info.node in around:
                    continue
                if around.isdisjoint(kept):
                    return False
                feeds = True
    return feeds


def _is_measured(ctx: Context, node: ast.expr) -> bool:
    """``len(sampler)``, a number in both."""
    call = ctx.source.parents.get(node)
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "len"


def makes_one(ctx: Context, statement: ast.stmt, kept: Collection[ast.AST]) -> bool:
    """Whether a statement makes an instance of a class that stays in PyTorch."""
    calls = (node for node in symbols.walk(statement) if isinstance(node, ast.Call))
    return any(isinstance(fact := ctx.fact(call.func), Class) and fact.info.node in kept for call in calls)
