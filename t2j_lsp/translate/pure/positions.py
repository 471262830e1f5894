"""Places of a text that was rewritten: where what stands in the new text stood in the old one, and back."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from t2j_lsp.contract import Span
from t2j_lsp.translate.source.text import Edit, in_order

_LINE_BREAK = re.compile(r"\r\n|\r|\n")


class Rewriting:
    """One rewriting of a text by edits."""

    def __init__(self, text: str, edits: Iterable[Edit]) -> None:
        self.old = text
        self._old: list[int] = [0]
        self._new: list[int] = [0]
        """Places at which a part begins that is the same in both, in each text; between two parts stands an edit."""
        out: list[str] = []
        position = length = 0
        self._ends: list[int] = []
        for edit in in_order(edits):
            if edit.start < position:
                continue
            out += [text[position : edit.start], edit.new]
            length += edit.start - position
            self._ends.append(length)
            length += len(edit.new)
            position = edit.end
            self._old.append(position)
            self._new.append(length)
        out.append(text[position:])
        self.new = "".join(out)
        self._ends.append(len(self.new))
        self._starts = _starts(self.old), _starts(self.new)

    def back(self, index: int, end: bool = False) -> int:
        """Where an index of the new text stood; what an edit wrote stood where it begins, or ends."""
        at = bisect_right(self._new, index) - 1
        if end and index == self._new[at] and at and index > self._ends[at - 1]:
            return self._old[at]
        if index <= self._ends[at]:
            return self._old[at] + index - self._new[at]
        same = self._ends[at] - self._new[at]
        return self._old[at + 1] if end else self._old[at] + same

    def forth(self, index: int) -> int:
        """Where an index of the old text stands now; inside of what was replaced, where that begins."""
        at = bisect_right(self._old, index) - 1
        return min(self._new[at] + index - self._old[at], self._ends[at])

    def span_back(self, span: Span) -> Span:
        """A span of the new text in the old one."""
        starts = self._starts[1]
        begin = self.back(starts[span.line - 1] + span.column)
        stop = max(begin, self.back(starts[span.end_line - 1] + span.end_column, end=True))
        first, last = self.line(begin), self.line(stop)
        old = self._starts[0]
        return Span(first, begin - old[first - 1], last, stop - old[last - 1])

    def line(self, index: int) -> int:
        """The line of an index of the old text."""
        return bisect_right(self._starts[0], index)

    def lines_forth(self, first: int, last: int) -> tuple[int, int]:
        """The lines of the new text on which what begins lines of the old one stands."""
        begin = self.line_forth(first)
        return begin, max(begin, self.line_forth(last))

    def line_forth(self, line: int) -> int:
        """The line of the new text on which what begins a line of the old one stands."""
        start = self._starts[0][line - 1]
        text = self.old[start:]
        return bisect_right(self._starts[1], self.forth(start + len(text) - len(text.lstrip(" \t"))))


def _starts(text: str) -> list[int]:
    return [0] + [m.end() for m in _LINE_BREAK.finditer(text)]
