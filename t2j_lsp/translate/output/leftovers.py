"""The last look at the source: a use of PyTorch that stays in the output is a gap, or somebody decided that it stays.

Rules and planners report what they leave. What none of them looked at (a place where the rewriting doesn't go, a value
that no rule takes) would otherwise stay PyTorch in silence.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from itertools import accumulate

from t2j_lsp.contract import Finding
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.scope import CurrentStatement
from t2j_lsp.translate.expressions.unknown_makers import STARRED
from t2j_lsp.translate.rule.facts import UNKNOWN, Object, OptimizerFunction, Qual, QualOrNone
from t2j_lsp.translate.rule.names import OUTPUT_METHODS, is_torch
from t2j_lsp.translate.source.scopes import starred_names
from t2j_lsp.translate.source.text import Source


def report_leftovers(context: Context, claimed: set[str]) -> None:
    """Report uses of torch that no edit replaces, no finding covers and no planner keeps.

    ``claimed`` are the names that the output binds itself: a helper may be called as PyTorch's class is.
    """
    replaced = sorted((e.start, e.end) for e in context.edits.made if e.end > e.start)
    starts = [start for start, _ in replaced]
    reach = list(accumulate((end for _, end in replaced), max))
    trained = all(finding.code != "training-loop" for finding in context.report.findings)
    starred = starred_names(context.source, context.inference.env)
    imported = context.inference.torch_imports
    copied = starred or imported
    written = {word for edit in context.edits.made for word in re.findall(r"\w+", edit.new)} if copied else set()
    for node in context.source.written_nodes:
        left = _of_torch(context, node, claimed) or trained and _of_optimizer(context, node)
        unsure = None if left else _of_import(context, node, claimed, imported)
        left = left or unsure
        reason = "no rule converts this use of {}; it stays PyTorch"
        if not left and isinstance(node, ast.Name) and node.id in starred and context.inference.fact(node) == UNKNOWN:
            left, reason = (node, node.id), STARRED
        if not left:
            continue
        use, name = left
        start, end = context.source.span(use)
        at = bisect_right(starts, start)
        if at and reach[at - 1] >= end and not ((reason is STARRED or unsure) and use.id in written):  # type: ignore[attr-defined]
            continue
        statement = _statement(context, use)
        if (
            statement is None
            or context.source.is_marked(statement)
            or any(_covers(f, statement) for f in context.report.findings)
        ):
            continue
        saved, context.scope.statement = context.scope.statement, CurrentStatement(statement)
        context.report.gap(use, name, "left", reason.format(name))
        context.scope.statement = saved


def _of_torch(context: Context, node: ast.AST, claimed: set[str]) -> tuple[ast.expr, str] | None:
    """A use of what PyTorch has under a name, and the name."""
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or node.id in claimed:
        return None
    fact = context.inference.facts.get(node) or context.inference.env.get(node.id, UNKNOWN)
    kept = isinstance(fact, QualOrNone) and node.id not in context.inference.torch_imports  # what it was given is JAX's
    left = isinstance(fact, Qual) and is_torch(fact.name) and not isinstance(fact, OptimizerFunction) and not kept
    return _whole_name(context.source, node, fact.name) if left and isinstance(fact, Qual) else None


def _of_import(
    context: Context, node: ast.AST, claimed: set[str], imported: dict[str, str]
) -> tuple[ast.expr, str] | None:
    """A name that is PyTorch's where an import says so, and of which nothing is known, as something else binds it."""
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or node.id not in imported:
        return None
    if node.id in claimed or context.inference.facts.get(node, UNKNOWN) != UNKNOWN:
        return None
    return (node, imported[node.id]) if context.source.home(node) is None else None


def _of_optimizer(context: Context, node: ast.AST) -> tuple[ast.expr, str] | None:
    """What is read of an optimizer of PyTorch, and its name: Flax's has no ``param_groups``."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return None
    if context.inference.has_jax and node.attr in OUTPUT_METHODS:
        return None
    fact = context.inference.facts.get(node.value)
    known = isinstance(fact, Object) and fact.kind == "optimizer"
    return (node, f"torch.optim.Optimizer.{node.attr}") if known else None


def _whole_name(source: Source, node: ast.Name, name: str) -> tuple[ast.expr, str]:
    """``nn.init.uniform_`` for its ``nn``, and its qualified name."""
    use: ast.expr = node
    while isinstance(parent := source.parents.get(use), ast.Attribute):
        use, name = parent, f"{name}.{parent.attr}"
    return use, name


def _statement(context: Context, use: ast.AST) -> ast.stmt | None:
    """The statement around a use; None where it is kept on purpose, and in annotations, which nothing computes."""
    if context.plan.keeps(use, context.source.parents):
        return None
    statement: ast.stmt | None = None
    inner, place = use, context.source.parents.get(use)
    while place is not None:
        if inner in (getattr(place, "annotation", None), getattr(place, "returns", None)):
            return None
        if statement is None and isinstance(place, ast.stmt):
            statement = place
        inner, place = place, context.source.parents.get(place)
    return statement


def _covers(finding: Finding, statement: ast.stmt) -> bool:
    """Whether a finding is about a simple statement, or about the head of one that holds others."""
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if isinstance(body, list) else statement.end_lineno or statement.lineno
    return finding.span.line <= max(last, statement.lineno) and finding.span.end_line >= statement.lineno
