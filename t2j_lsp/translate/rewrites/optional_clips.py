"""Gradients that are clipped if a setting says so, in the branch of a loop that trains: ``if args.clip: ...``.

``clip_grad_norm_(parameters, limit if args.clip else float("inf"))`` leaves gradients as they are where nothing is to
be clipped. Where a file that has gaps clips so, it is read as if it said that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.source.rearranged import RearrangedText
from t2j_lsp.translate.training.program.step_calls import Reader, Refused, StepCall, clip_kind
from t2j_lsp.translate.training.program.text import replaced

from .left_out import ObjectLeftOut, Stays, only_reads


def with_optional_clips_unconditional(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which the limit says whether it clips; None if it does, or the training code converts."""
    if not any(gap.code == "training-loop" for gap in gaps):
        return None
    written = _OptionalClips(inference)
    for node in inference.source.nodes:
        if isinstance(node, ast.If) and not node.orelse and isinstance(written.parents.get(node), ast.If):
            try:
                written.of(node)
            except (Stays, Refused):
                continue
    return RearrangedText.of(inference.source.text, written.made_edits())


class _OptionalClips(ObjectLeftOut):
    def of(self, node: ast.If) -> None:
        """One such branch. Raises Stays, or Refused."""
        clip = Reader(self.inference).read(node.body[0])
        if clip is None or clip.kind != "clip" or clip.edit is not None or clip_kind(self.inference, clip) != "norm":
            raise Stays
        limit = argument(clip.call, 1, "max_norm")
        if limit is None or not only_reads(node.test) or not only_reads(limit) or self._is_read_elsewhere(clip, node):
            raise Stays
        source, statement = self.source, node.body[0]
        test = source.segment(node.test)
        begin, end = source.span(limit)
        inside = {(begin, end): f'{source.segment(limit)} if {test} else float("inf")'}
        if not source.starts_line(node) or not all(map(source.starts_line, node.body)) or "\n" in test:
            raise Stays
        call = replaced(source, *source.span(statement), inside).rstrip()
        if "\n" in call or source.text.startswith("elif", source.span(node)[0]):
            raise Stays
        if len(node.body) == 1:
            self.put(node, call)
            return
        start, behind = source.span(node)[0], source.span(node.body[1])[0]
        outer, inner = source.indent(node.lineno), source.indent(node.body[1].lineno)
        self.instead[start, behind] = f"{call}{source.newline}{outer}if {test}:{source.newline}{inner}"

    def _is_read_elsewhere(self, clip: StepCall, node: ast.If) -> bool:
        """Whether the norm is read where there may be none."""
        if clip.target is None:
            return False
        if not isinstance(clip.target, ast.Name):
            return True
        start, end = self.source.span(node)
        named = self.source.names.get(clip.target.id, ())
        return not all(start <= self.source.span(n)[0] < end for n in named)
