"""Backward passes of a script whose gradients nothing reads (``loss.backward()`` to see that it works): they go."""

from __future__ import annotations

import ast
import builtins

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.backward import differentiates
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementHandler, StatementRewriter
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.rule.definitions import Class, Function, Instance, is_module
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import is_torch

READ = Gate(libraries=("torch.optim.", "torch.autograd."), objects=frozenset({"optimizer", "scheduler", "scaler"}))
"""What reads gradients."""
NOTE = "nothing reads these gradients, so they are not computed; nnx.grad(loss_fn)(model) gives them"


def plan_unread_gradients(context: Context) -> bool:
    """Takes away the backward passes at the module level, if no code can read what they give; whether there were any.

    The file has nothing that reads gradients, and nothing of other files is called once they are there.
    """
    words = {name.rpartition(".")[2] for name in names_with(Trait.READS_GRADIENT)}
    if context.inference.has(READ) or not words.isdisjoint(context.source.words):
        return False
    statements = [one for block in symbols.blocks(context.source.tree.body) for one in block]
    passes = [s for s in statements if isinstance(s, ast.Expr) and differentiates(context.inference, s.value)]
    if not passes or any(_in_a_loop(context, one) for one in passes):
        return False
    taken = {one.value for one in passes}
    if any(differentiates(context.inference, n) for n in context.source.nodes if n not in taken):
        return False
    first = min(one.lineno for one in passes)
    behind = (n for s in statements if s.lineno >= first for n in symbols.walk(s) if n not in taken)
    if not all(_is_known(context, n) for n in behind if isinstance(n, ast.Call)):
        return False
    for one in passes:
        context.plan.on_statement(one, _taken_away(context, one))
    return True


def _taken_away(context: Context, node: ast.Expr) -> StatementHandler:
    def handler(statements: StatementRewriter) -> None:
        context.report.note(node, "torch.Tensor.backward", "note", NOTE)
        context.edits.delete(node)
        context.report.count_converted()

    return handler


def _in_a_loop(context: Context, node: ast.stmt) -> bool:
    return any(isinstance(n, ast.For | ast.While | ast.AsyncFor) for n in ancestors(node, context.source.parents))


def _is_known(context: Context, call: ast.Call) -> bool:
    """Whether what is called is PyTorch's, Python's, or the file's own: none of these reads gradients here."""
    fact = context.fact(call.func)
    if isinstance(fact, Qual):
        return is_torch(fact.name) and not fact.name.startswith("torch.utils.")
    if isinstance(fact, Class | Function) or is_module(fact):
        return True
    if isinstance(call.func, ast.Attribute):
        owner = context.fact(call.func.value)
        return is_module(owner) or isinstance(owner, Tensor | Instance)
    return isinstance(call.func, ast.Name) and call.func.id in vars(builtins)
