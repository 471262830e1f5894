"""What a model is asked for in the editor: a class's or function's gaps, or one whose verdict is ``different``.

Both become a translation whose refused spans are just these, of the text that stands in the conversion now: what the
user edited there, and what was answered before, is sent, run and kept.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from difflib import SequenceMatcher

from t2j_lsp.assist.spans import MARK, RefusedSpan, refused_spans
from t2j_lsp.contract import DIFFERS, Finding, Severity, SourceMapEntry, Span, T2JError, Translation

DRAFT = f"{MARK}unverified draft by "


def with_gaps(made: Translation, text: str, name: str) -> Translation:
    """The present text of a conversion with the gaps of one definition; ``name`` empty: those outside of any.

    Args:
        made: what the rules make of the source.
        text: the conversion as it stands.
        name: a class or function at the top level of the source.

    Raises:
        T2JError: where none of these gaps is left in the text.
    """
    before, now = made.code.splitlines(), text.splitlines()
    blocks = SequenceMatcher(None, before, now, autojunk=False).get_opcodes()
    tree = ast.parse(made.source)
    entries: list[SourceMapEntry] = []
    gaps: list[Finding] = []
    for span in refused_spans(made):
        if definition_at(tree, span.source_line) != name:
            continue
        place = _present(span, before, now, blocks)
        if place is not None:
            entries.append(SourceMapEntry(span.source_line, span.source_end_line, *place))
            gaps += span.findings
    if not gaps:
        where = f"in {name}" if name else "outside of classes and functions"
        raise T2JError(f"the rules left nothing {where} that is still in the conversion")
    return Translation(made.source, text, tuple(gaps), tuple(entries))


def differing(source: str, text: str, name: str, reason: str) -> Translation:
    """The present text of a conversion with one definition as what is asked for, because it differs.

    Raises T2JError where a side does not define it.
    """
    source_lines, lines = _lines_of(source, name), _lines_of(text, name)
    finding = Finding(Span(source_lines[0], 0, source_lines[1], 0), name, DIFFERS, Severity.GAP, reason)
    return Translation(source, text, (finding,), (SourceMapEntry(*source_lines, *lines),))


def definition_at(tree: ast.Module, line: int) -> str:
    """The class or function at the top level in which a line stands; empty outside of any."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0):
            return node.name
    return ""


def _present(
    span: RefusedSpan, before: list[str], now: list[str], blocks: Sequence[tuple[str, int, int, int, int]]
) -> tuple[int, int] | None:
    """The lines of a span in the present text, without the marks above it: as it was, or as a draft that is no answer.

    None where somebody wrote something else there.
    """
    first, last = span.line - 1, span.end_line - 1
    start = next(j1 + (first - i1 if tag == "equal" else 0) for tag, i1, i2, j1, _ in blocks if i1 <= first < i2)
    end = next(j1 + last - i1 + 1 if tag == "equal" else j2 for tag, i1, i2, j1, j2 in blocks if i1 <= last < i2)
    lines = now[start:end]
    if lines != before[first : last + 1] and not any(line.strip().startswith(DRAFT) for line in lines):
        return None
    while start < end and now[start].strip().startswith(MARK):
        start += 1
    return (start + 1, end) if start < end else None


def _lines_of(text: str, name: str) -> tuple[int, int]:
    """The first and last line of a definition, decorators included."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise T2JError(f"the conversion is no Python: line {error.lineno}: {error.msg}") from None
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            return first, node.end_lineno or node.lineno
    raise T2JError(f"{name} is not on both sides")
