"""The translation of a text with functions, told of the text that it was written from."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate
from typing import TypeVar

from t2j_lsp.contract import Finding, Outcome, Rewrite, SourceMapEntry, Span, TextEdit, Translation
from t2j_lsp.translate.source.text import Source

from .functions import FunctionalText
from .positions import Rewriting

Placed = TypeVar("Placed", Finding, Rewrite, Outcome)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


def of_source(source: str, functions: FunctionalText, translation: Translation) -> Translation:
    """What became of ``source``: places of the text in between are those that they were written from."""
    bom = "\ufeff" if source.startswith("\ufeff") else ""
    findings = sorted(
        {*functions.findings, *(_moved(f, functions) for f in translation.findings)}, key=lambda f: f.span
    )
    changed = translation.code != source
    return replace(
        translation,
        source=source,
        findings=tuple(_once(findings)),
        source_map=tuple(_source_map(source.removeprefix(bom), functions, translation)) if changed else (),
        converted=translation.converted + functions.converted,
        edits=tuple(_edits(source.removeprefix(bom), translation.code.removeprefix(bom))),
        rewrites=tuple(_distinct(_moved(r, functions) for r in translation.rewrites)),
        outcomes=tuple(_distinct(_moved(o, functions) for o in translation.outcomes)),
    )


def _once(findings: Iterable[Finding]) -> Iterator[Finding]:
    seen: set[tuple[Span, str, str]] = set()
    for finding in findings:
        key = finding.span, finding.name, finding.reason
        if key not in seen:
            seen.add(key)
            yield finding


def _moved(one: Placed, functions: FunctionalText) -> Placed:
    span = one.span
    for rewriting in reversed(functions.rewritings):
        span = rewriting.span_back(span)
    return replace(one, span=span)


def _distinct(found: Iterable[Placed]) -> Iterator[Placed]:
    """One for each place: of several that stood in what was written, the first."""
    seen: set[Span] = set()
    for one in found:
        if one.span not in seen:
            seen.add(one.span)
            yield one


def _source_map(text: str, functions: FunctionalText, translation: Translation) -> Iterator[SourceMapEntry]:
    """The lines that each statement became, through the text in between."""
    first, second = functions.rewritings
    starts = [(e.source_line, e.line, e.end_line) for e in translation.source_map]
    for entry in Source(text).apply(())[1]:
        low = _forth(first, second, entry.source_line)
        high = max(low, _forth(first, second, entry.source_end_line))
        lines = [(begin, end) for at, begin, end in starts if low <= at <= high]
        if lines:
            yield SourceMapEntry(
                entry.source_line, entry.source_end_line, min(b for b, _ in lines), max(e for _, e in lines)
            )


def _forth(first: Rewriting, second: Rewriting, line: int) -> int:
    return second.line_forth(first.line_forth(line))


def _edits(old: str, new: str) -> Iterator[TextEdit]:
    """What differs, line by line."""
    before, after = _LINE.findall(old), _LINE.findall(new)
    starts = [0, *accumulate(map(len, before))]
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            yield TextEdit(starts[a], starts[b], "".join(after[c:d]))
