"""Classes of optimizers of the program's own: read as the functions that stand for them.

``class Lion(Optimizer)`` becomes ``@Optimizer def Lion(learning_rate)``, whose body is said of one parameter; so its
words are translated as those of any function, and calls of the class are those of an optimizer of ``torch.optim``.
"""

from __future__ import annotations

import ast

from t2j_lsp.contract import Finding, Severity
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.inference.own_optimizers import STEP_WORD, imported_functions, is_own_optimizer
from t2j_lsp.translate.source.optimizer_classes.exports import exported, without_names
from t2j_lsp.translate.source.optimizer_classes.function import function_text, left_over
from t2j_lsp.translate.source.optimizer_classes.unfit import Unfit
from t2j_lsp.translate.source.positions import first_line
from t2j_lsp.translate.source.rearranged import Edits, Fragment, Rearranged, RearrangedText

GOES = (
    "it wrote into the lists that an optimizer's step handed it; the optimizer has what it did, and __all__ no more it"
)
NEEDS = Gate(words=frozenset({STEP_WORD}))


def with_optimizer_classes_as_functions(inference: Inference) -> RearrangedText | None:
    """The text in which functions stand for classes of optimizers; None where there are none that may."""
    source, edits = inference.source, Edits()
    texts: dict[ast.ClassDef, str] = {}
    for info in inference.classes.values():
        if info.node not in source.tree.body or not is_own_optimizer(info) or not source.starts_line(info.node):
            continue
        try:
            text = function_text(source, info.node, imported_functions(inference.ask))
        except Unfit:
            continue
        texts[info.node] = text
        start, end = source.span(info.node)
        edits.append((start, end, [Fragment(text.replace("\n", source.newline), start, end)]))
    gone = left_over(source, texts)
    for function in gone:
        first = first_line(function)
        while first > 1 and not source.line_text(first - 1).strip():
            first -= 1
        edits.append((source.starts[first - 1], source.line_end(function.end_lineno or function.lineno), []))
    listed = exported(source)
    edits += without_names(source, [function.name for function in gone])
    notes = [
        Finding(source.contract_span(listed[f.name]), f.name, "note", Severity.NOTE, GOES)
        for f in gone
        if f.name in listed
    ]
    return RearrangedText((Rearranged.of(source.text, edits),), tuple(notes)) if edits else None
