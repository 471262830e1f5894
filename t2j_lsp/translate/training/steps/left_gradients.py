"""Functions that differentiate a module and leave the gradients in its parameters: an attack by ``loss.backward()``."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.backward import differentiates
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import FunctionInfo, is_module
from t2j_lsp.translate.rule.library import is_loss

LEAVES = (
    "{} leaves gradients in the parameters, which PyTorch adds to those of the step: zero them behind it, or take the"
    " input's alone with torch.autograd.grad."
)


def left_by(inference: Inference, statements: Sequence[ast.stmt], zeros: Collection[int]) -> str | None:
    """The function that leaves gradients which a backward pass of a scope adds to; None if none does.

    ``zeros`` are the lines in which gradients are zeroed: one has to stand between the two, or around the end of the
    loop.
    """
    run = [s for s in statements if not isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    calls = [n for s in run for n in symbols.own_nodes(s) if isinstance(n, ast.Call)]
    passes = sorted(n.lineno for n in calls if differentiates(inference, n))
    for call in calls:
        info = called_function(inference.fact(call.func))
        if info is None or info.external or not _differentiates_alone(inference, info):
            continue
        behind = next((line for line in passes if line > call.lineno), None)
        if behind is not None and any(call.lineno < line < behind for line in zeros):
            continue
        if behind is None and (not passes or any(line > call.lineno or line < passes[0] for line in zeros)):
            continue
        given = [*call.args, *(k.value for k in call.keywords), *(n for n in symbols.walk(info.node))]
        if any(isinstance(n, ast.expr) and is_module(fact := inference.fact(n)) and not is_loss(fact) for n in given):
            return info.name
    return None


def _differentiates_alone(inference: Inference, info: FunctionInfo) -> bool:
    """Whether a function has a backward pass of all gradients, and neither an update nor a zeroing behind it."""
    calls = [n for n in symbols.walk(info.node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    passes = [n for n in calls if differentiates(inference, n) and all(k.arg != "inputs" for k in n.keywords)]
    if not passes:
        return False
    last = max(n.lineno for n in passes)
    done = {"zero_grad", "step"}
    if any(isinstance(n.func, ast.Attribute) and n.func.attr in done and n.lineno > last for n in calls):
        return False
    return not any(isinstance(n, ast.Attribute) and _freezes(inference, n) for n in symbols.walk(info.node))


def _freezes(inference: Inference, node: ast.Attribute) -> bool:
    """Whether a function sets flags of what may be parameters: of no variable of its own that it was given."""
    parent = inference.source.parents.get(node)
    if node.attr == "requires_grad_" and isinstance(parent, ast.Call):
        return any(isinstance(a, ast.Constant) and a.value is False for a in parent.args)
    stored = node.attr == "requires_grad" and isinstance(node.ctx, ast.Store)
    return stored and isinstance(parent, ast.Assign) and ast.unparse(parent.value) == "False"
