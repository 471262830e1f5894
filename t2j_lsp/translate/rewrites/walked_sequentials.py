"""The children of a Sequential in the dict that PyTorch keeps of them, ``self._modules.values()``: the Sequential.

Flax's modules keep no such dict. Where a file that has gaps walks it, it is read as if it walked the Sequential, whose
children have their numbers for names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.containers import SEQUENTIAL
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Instance
from t2j_lsp.translate.rule.facts import Fact, Layer
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText
from t2j_lsp.translate.training.optimizers.numbered_parts import is_numbered

_CHILDREN = "_modules"


def with_sequentials_walked(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which Sequentials are walked themselves; None if nothing walks their dicts, or all converts."""
    source = inference.source
    if _CHILDREN not in source.words or not any(gaps):
        return None
    edits: Edits = []
    for node in source.nodes:
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(value=owner, attr="_modules"), attr="values" | "items" as asked),
                args=[],
                keywords=[],
            ):
                fact, (start, end), text = inference.fact(owner), source.span(node), source.segment(owner)
                if asked == "values" and _is_sequential(fact):
                    edits.append((start, end, [Fragment(text, start, end)]))
                elif asked == "items" and is_numbered(fact):
                    edits.append((start, end, [Fragment(f"zip(map(str, range(len({text}))), {text})", start, end)]))
    return RearrangedText.of(source.text, edits)


def _is_sequential(fact: Fact) -> bool:
    """Whether it is a Sequential, or an instance of a class that derives from it and keeps its way of being walked."""
    if isinstance(fact, Instance):
        return fact.cls.info.layer_base == SEQUENTIAL and "__iter__" not in fact.cls.info.methods
    return isinstance(fact, Layer) and fact.name == SEQUENTIAL
