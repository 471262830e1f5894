"""``net = net.train()``, which names a module what it is named already: where a file has gaps, it is ``net.train()``.

A training step knows the mode that a statement sets, and takes no name that is given anew in it for the same module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.source.rearranged import Edits, RearrangedText

_MODES = frozenset({"eval", "train"})


def with_modes_as_statements(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which modes are set by statements; None where they are, or no training is left."""
    source = inference.source
    if source.words.isdisjoint(_MODES) or not any(gap.code == "training-loop" for gap in gaps):
        return None
    edits: Edits = []
    for node in source.nodes:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id=held) as module, attr=mode)) as call,
            ) if name == held and mode in _MODES and is_module(inference.fact(module)):
                edits.append((source.span(node)[0], source.span(call)[0], []))
    return RearrangedText.of(source.text, edits)
