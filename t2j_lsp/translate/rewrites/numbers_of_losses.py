"""``loss.data[0]``, as a number was read before PyTorch 0.4: where a file does so, it is ``loss.item()``."""

from __future__ import annotations

from collections.abc import Iterable

from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.old_items import old_items
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText


def with_old_items_as_numbers(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such items are numbers; None if there are none, or everything converts."""
    source = inference.source
    edits: Edits = []
    for node, tensor in old_items(inference).items() if any(gaps) else ():
        start, (_, end) = source.span(tensor)[1], source.span(node)
        edits.append((start, end, [Fragment(".item()", start, end)]))
    return RearrangedText.of(source.text, edits)
