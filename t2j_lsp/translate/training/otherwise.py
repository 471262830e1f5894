"""Texts that say what a file with gaps says, in statements that have a form of their own in JAX."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.source.own_lines import on_own_lines
from t2j_lsp.translate.source.rearranged import RearrangedText

from .inlined import with_parts_of_steps_inlined
from .marked_rows import with_rows_filled_by_masks
from .unrolled import with_loops_over_optimizers_unrolled


def texts_put_otherwise(inference: Inference, gaps: Sequence[Finding]) -> Iterator[RearrangedText]:
    """The texts of a file with ``gaps``, each put otherwise in one way.

    Its statements have lines of their own, loops over optimizers are unrolled, rows are filled by masks, and parts of
    training steps stand where they were called.
    """
    if (text := on_own_lines(inference.source, gaps)) is not None:
        yield text
    for put in (with_loops_over_optimizers_unrolled, with_rows_filled_by_masks):
        if (text := put(inference, gaps)) is not None:
            yield text
    yield from with_parts_of_steps_inlined(inference, gaps)
