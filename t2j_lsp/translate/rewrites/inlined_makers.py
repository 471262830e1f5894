"""Functions that make the optimizer of what they are given, ``def get_input_optimizer(img): return LBFGS([img])``.

In JAX an update of bare tensors gives them new values, in the variables that the optimizer was made of. Where a file
has such a function, and a gap there, it is read as if its body stood where it is called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Object
from t2j_lsp.translate.source.rearranged import RearrangedText

from .inlined import Inlining


def with_makers_of_optimizers_inlined(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which these functions stand where they are called; None if none of them has a gap."""
    lines = {gap.span.line for gap in gaps if gap.name.startswith("torch.optim.")}
    makers = [
        info
        for info in inference.functions.values()
        if not info.external and _makes_optimizer(inference, info) and not lines.isdisjoint(_lines(info))
    ]
    return Inlining(inference, makers).text() if makers else None


def _makes_optimizer(inference: Inference, info: FunctionInfo) -> bool:
    """Whether an optimizer is what a function gives."""
    match info.node.body[-1]:
        case ast.Return(value=ast.expr() as value):
            fact = inference.fact(value)
            return isinstance(fact, Object) and fact.kind == "optimizer"
    return False


def _lines(info: FunctionInfo) -> range:
    return range(info.node.lineno, (info.node.end_lineno or info.node.lineno) + 1)
