"""The translation of a text with functions, told of the text that it was written from."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate
from typing import TypeVar

from t2j_lsp.contract import MARK, Finding, Outcome, Rewrite, SourceMapEntry, Span, TextEdit, Translation
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
    entries = tuple(_source_map(source.removeprefix(bom), functions, translation)) if changed else ()
    return replace(
        translation,
        source=source,
        findings=tuple(_once(findings)),
        source_map=entries,
        converted=translation.converted + functions.converted,
        edits=tuple(_edits(source.removeprefix(bom), translation.code.removeprefix(bom), entries)),
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
