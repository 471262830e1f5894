"""Sequences that a package makes tensors of itself: ``transforms.Normalize(torch.tensor(mean), torch.tensor(std))``.

Such a tensor would be an array of JAX's, which the package can't take. Where a file has gaps, the package is given the
sequence: what prepares images stays PyTorch's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Set

from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Fact, Qual, is_tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText


def with_sequences_handed_as_they_are(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which packages are given the sequences; None if there are none, or everything converts."""
    source, classes = inference.source, names_with(Trait.TAKES_SEQUENCES)
    edits: Edits = []
    if classes.isdisjoint(gap.name for gap in gaps):
        return None
    for node in source.nodes:
        if not isinstance(node, ast.Call) or not _is_one_of(inference.fact(node.func), classes):
            continue
        for value in (*node.args, *(k.value for k in node.keywords)):
            match value:
                case ast.Call(args=[given], keywords=[]) if _is_one_of(
                    inference.fact(value.func), names_with(Trait.FROM_VALUES)
                ) and not is_tensor(inference.fact(given)):
                    start, end = source.span(value)
                    edits.append((start, end, [Fragment(source.segment(given), *source.span(given))]))
    return RearrangedText.of(source.text, edits)


def _is_one_of(fact: Fact, names: Set[str]) -> bool:
    return isinstance(fact, Qual) and fact.name in names
