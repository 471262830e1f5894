"""The translation of a text that t2j wrote itself, told of the text that it was written from."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Protocol, TypeVar

from t2j_lsp.contract import MARK, Finding, Outcome, Rewrite, SourceMapEntry, Span, TextEdit, Translation
from t2j_lsp.translate.source.text import Source

Placed = TypeVar("Placed", Finding, Rewrite, Outcome)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


class PlacedText(Protocol):
    """One rewriting of a text."""

    def span_back(self, span: Span) -> Span:
        """A span of the new text in the old one."""

    def lines_forth(self, first: int, last: int) -> tuple[int, int] | None:
        """The lines of the new text in which lines of the old one stand now."""


class Rewritten(Protocol):
    """A text in between: how it came about, and what there is to say of that."""

    @property
    def rewritings(self) -> Sequence[PlacedText]:
        """The steps to it."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What there is to say of what it was written from."""

    @property
    def converted(self) -> int:
        """How many places are converted in it."""


def of_source(source: str, between: Rewritten, translation: Translation) -> Translation:
    """What became of ``source``: places of the text in between are those that they were written from."""
    bom = "\ufeff" if source.startswith("\ufeff") else ""
    findings = sorted({*between.findings, *(_moved(f, between) for f in translation.findings)}, key=lambda f: f.span)
    changed = translation.code != source
    entries = tuple(_source_map(source.removeprefix(bom), between, translation)) if changed else ()
    return replace(
        translation,
        source=source,
        findings=tuple(_once(findings)),
        source_map=entries,
        converted=translation.converted + between.converted,
        edits=tuple(_edits(source.removeprefix(bom), translation.code.removeprefix(bom), entries)),
        rewrites=tuple(_distinct(_moved(r, between) for r in translation.rewrites)),
        outcomes=tuple(_distinct(_moved(o, between) for o in translation.outcomes)),
    )


def _once(findings: Iterable[Finding]) -> Iterator[Finding]:
    seen: set[tuple[Span, str, str]] = set()
    for finding in findings:
        key = finding.span, finding.name, finding.reason
        if key not in seen:
            seen.add(key)
            yield finding


def _moved(one: Placed, between: Rewritten) -> Placed:
    span = one.span
    for rewriting in reversed(between.rewritings):
        span = rewriting.span_back(span)
    return replace(one, span=span)


def _distinct(placed: Iterable[Placed]) -> Iterator[Placed]:
    """One for each place: of several that stood in what was written, the first."""
    seen: set[Span] = set()
    for one in placed:
        if one.span not in seen:
            seen.add(one.span)
            yield one


def _source_map(text: str, between: Rewritten, translation: Translation) -> Iterator[SourceMapEntry]:
    """The lines that each statement became, through the text in between."""
    starts = [(e.source_line, e.line, e.end_line) for e in translation.source_map]
    for entry in Source(text).apply(())[1]:
        place = _forth(between, entry)
        lines = [(begin, end) for at, begin, end in starts if place is not None and place[0] <= at <= place[1]]
        if lines:
            yield SourceMapEntry(
                entry.source_line, entry.source_end_line, min(b for b, _ in lines), max(e for _, e in lines)
            )


def _forth(between: Rewritten, entry: SourceMapEntry) -> tuple[int, int] | None:
    place: tuple[int, int] | None = (entry.source_line, entry.source_end_line)
    for rewriting in between.rewritings:
        place = None if place is None else rewriting.lines_forth(*place)
    return place


def _edits(old: str, new: str, entries: Iterable[SourceMapEntry]) -> Iterator[TextEdit]:
    """What differs: one edit for each statement of the module level, and line by line what stands between them."""
    before, after = _LINE.findall(old), _LINE.findall(new)
    starts = [0, *accumulate(map(len, before))]
    line, target = 1, 1
    for entry in (*_statements(old, entries), SourceMapEntry(len(before) + 1, len(before), len(after) + 1, len(after))):
        if entry.source_line < line or entry.line < target:
            continue
        gap = before[line - 1 : entry.source_line - 1], after[target - 1 : entry.line - 1]
        for kind, a, b, c, d in difflib.SequenceMatcher(None, *gap, autojunk=False).get_opcodes():
            if kind != "equal":
                text = "".join(gap[1][c:d])
                yield TextEdit(starts[line - 1 + a], starts[line - 1 + b], text, not text.startswith(MARK))
        line, target = entry.source_end_line + 1, entry.end_line + 1
        text = "".join(after[entry.line - 1 : entry.end_line])
        begin, end = starts[entry.source_line - 1], starts[entry.source_end_line]
        if old[begin:end] != text:
            yield TextEdit(begin, end, text)


def _statements(text: str, entries: Iterable[SourceMapEntry]) -> Iterator[SourceMapEntry]:
    """The lines of the statements of the module level that are no imports."""
    known = {(entry.source_line, entry.source_end_line): entry for entry in entries}
    for node in Source(text).tree.body:
        entry = known.get((node.lineno, node.end_lineno or node.lineno))
        if entry is not None and not isinstance(node, ast.Import | ast.ImportFrom):
            yield entry
