"""Backward passes by PyTorch's function: ``torch.autograd.backward(loss)`` is ``loss.backward()``.

It differentiates the sum of what it is given. Where a file that has gaps calls it, it is read as if the sum's method
were called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText

from .weighted_backward import operand

_KNOWN = frozenset({"tensors", "grad_tensors", "retain_graph", "create_graph"})


def with_backward_passes_as_methods(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which it is a method that is called; None if there is none, or everything converts."""
    names = names_with(Trait.BACKWARD_PASS)
    if not any(gap.name in names for gap in gaps):
        return None
    edits: Edits = []
    for node in inference.source.nodes:
        fact = inference.fact(node.func) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and isinstance(fact, Qual) and fact.name in names:
            text = _method(inference, node)
            start, end = inference.source.span(node)
            edits += [(start, end, [Fragment(text, start, end)])] if text else []
    return RearrangedText.of(inference.source.text, edits)


def _method(inference: Inference, call: ast.Call) -> str:
    """The call of the method; empty where it would say something else."""
    segment = inference.source.segment
    tensors, weights = argument(call, 0, "tensors"), argument(call, 1, "grad_tensors")
    if tensors is None or len(call.args) > 2 or any(k.arg not in _KNOWN for k in call.keywords):
        return ""
    several = tensors.elts if isinstance(tensors, ast.List | ast.Tuple) else [tensors]
    given = weights.elts if isinstance(weights, ast.List | ast.Tuple) else [weights] if weights is not None else []
    given = [one for one in given if not (isinstance(one, ast.Constant) and one.value is None)]
    if not several or given and len(several) > 1 or any(isinstance(one, ast.Starred) for one in (*several, *given)):
        return ""
    texts = [operand(inference.source, one) for one in several]
    loss = texts[0] if len(texts) == 1 else f"({' + '.join(texts)})"
    options = [segment(one) for one in given]
    options += [segment(k) for k in call.keywords if k.arg in ("retain_graph", "create_graph")]
    return f"{loss}.backward({', '.join(options)})"
