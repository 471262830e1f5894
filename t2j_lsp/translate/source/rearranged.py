"""A text made of parts of another one, in another order: where what stands in it stood, and where what stood went."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from t2j_lsp.contract import Finding, Span

_LINE_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Fragment:
    """Code of the new text, and the range of the old one that it was, or was written for."""

    text: str
    start: int
    end: int


Edits = list[tuple[int, int, list[Fragment]]]
"""Ranges of a text, and what stands in their places in another."""


@dataclass(frozen=True)
class RearrangedText:
    """A text in between, and what there is to say of what it was made from."""

    rewritings: tuple[Rearranged, ...]
    findings: tuple[Finding, ...] = ()
    converted: int = 0

    @classmethod
    def of(cls, text: str, edits: Edits) -> RearrangedText | None:
        """A text with such edits; None where there are none."""
        return cls((Rearranged.of(text, edits),)) if edits else None

    @property
    def text(self) -> str:
        return self.rewritings[-1].new


class Rearranged:
    """The new text. ``replaced`` are ranges of the old one, and which of the parts stand in their place."""

    def __init__(self, old: str, parts: Sequence[Fragment], replaced: Sequence[tuple[int, int, range]]) -> None:
        self.old, self.parts = old, parts
        self.new = "".join(part.text for part in parts)
        self._at = [0, *accumulate(len(part.text) for part in parts)]
        self._replaced = replaced
        self._starts = _starts(old), _starts(self.new)

    @classmethod
    def of(cls, text: str, edits: Iterable[tuple[int, int, Sequence[Fragment]]]) -> Rearranged:
        """A text with ranges of it replaced by parts."""
        parts, replaced, at = list[Fragment](), list[tuple[int, int, range]](), 0
        for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
            if start > at:
                parts.append(Fragment(text[at:start], at, start))
            replaced.append((start, end, range(len(parts), len(parts) + len(new))))
            parts += new
            at = end
        parts.append(Fragment(text[at:], at, len(text)))
        return cls(text, parts, replaced)

    def span_back(self, span: Span) -> Span:
        """A span of the new text in the old one."""
        starts = self._starts[1]
        begin = self._back(starts[span.line - 1] + span.column, end=False)
        stop = self._back(starts[span.end_line - 1] + span.end_column, end=True)
        if stop < begin:  # it begins in front of what was put in, and ends in it
            begin, stop = stop, begin
        old = self._starts[0]
        first, last = bisect_right(old, begin), bisect_right(old, stop)
        return Span(first, begin - old[first - 1], last, stop - old[last - 1])

    def _back(self, index: int, end: bool) -> int:
        at = max(min(bisect_right(self._at, index - end) - 1, len(self.parts) - 1), 0)
        part = self.parts[at]
        if part.text == self.old[part.start : part.end]:
            return part.start + index - self._at[at]
        return part.end if end else part.start

    def lines_forth(self, first: int, last: int) -> tuple[int, int] | None:
        """The lines of the new text in which lines of the old one stand now; None for those that are gone."""
        starts = self._starts[0]
        begin, stop = starts[first - 1], starts[last] if last < len(starts) else len(self.old)
        begin += len(self.old[begin:stop]) - len(self.old[begin:stop].lstrip(" \t"))
        for low, high, parts in self._replaced:
            if low <= begin < high and parts:
                return self._lines(self._at[parts.start], self._at[parts.stop])
        indices = [self._forth(begin), self._forth(max(begin, starts[last - 1]))]
        for low, high, parts in self._replaced:
            if begin <= low < high <= stop and parts:
                indices += [self._at[parts.start], self._at[parts.stop] - 1]
        known = [index for index in indices if index is not None]
        return None if indices[0] is None else self._lines(min(known), max(known) + 1)

    def _lines(self, begin: int, stop: int) -> tuple[int, int]:
        starts = self._starts[1]
        return bisect_right(starts, begin), bisect_right(starts, max(begin, stop - 1))

    def _forth(self, index: int) -> int | None:
        """Where the first of the parts went that hold an index of the old text as it was."""
        for at, part in enumerate(self.parts):
            if part.start <= index < part.end and part.text == self.old[part.start : part.end]:
                return self._at[at] + index - part.start
        return None


def _starts(text: str) -> list[int]:
    return [0] + [m.end() for m in _LINE_BREAK.finditer(text)]
