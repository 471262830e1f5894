"""The statements that rules refused: where they stand in source and conversion, and how an answer replaces them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from t2j_lsp.contract import Finding, Severity, SourceMapEntry, Span, Translation
from t2j_lsp.symbols import bound_as

MARK = "# TODO(t2j): "
"""Begins the comment above each place that rules left as it was."""
ASKED = "asked"
"""The code of a finding for a definition that the rules converted, and that a model is asked for all the same."""


@dataclass(frozen=True)
class RefusedSpan:
    """One statement with gaps. Lines are 1-based, inclusive; those of the conversion begin with the marks above it."""

    number: int
    source_line: int
    source_end_line: int
    line: int
    end_line: int
    findings: tuple[Finding, ...]

    @property
    def optional(self) -> bool:
        """Whether the rules have code for it, which stays unless an answer is verified."""
        return all(finding.code == ASKED for finding in self.findings)

    @property
    def names(self) -> tuple[str, ...]:
        """The torch names and constructs that have no rule."""
        return tuple(dict.fromkeys(finding.name for finding in self.findings))

    def source(self, text: str) -> str:
        """Its lines of the PyTorch source."""
        return _lines(text, self.source_line, self.source_end_line)

    def converted(self, text: str) -> str:
        """Its lines of the conversion, marks included."""
        return _lines(text, self.line, self.end_line)


def refused_spans(translation: Translation) -> tuple[RefusedSpan, ...]:
    """The statements with gaps, in the order of the conversion. Gaps of one statement are one span."""
    by_entry: dict[SourceMapEntry, list[Finding]] = {}
    for gap in translation.gaps:
        around = [e for e in translation.source_map if e.source_line <= gap.span.line <= e.source_end_line]
        if around:
            smallest = min(around, key=lambda e: (e.source_end_line - e.source_line, e.end_line - e.line))
            by_entry.setdefault(smallest, []).append(gap)
    lines = translation.code.splitlines()
    spans: list[RefusedSpan] = []
    for entry in sorted(by_entry, key=lambda e: e.line):
        first = entry.line
        while first > 1 and lines[first - 2].strip().startswith(MARK):
            first -= 1
        place = (entry.source_line, entry.source_end_line, first, entry.end_line)
        spans.append(RefusedSpan(len(spans) + 1, *place, tuple(by_entry[entry])))
    return tuple(spans)


def with_all(translation: Translation) -> Translation:
    """The translation with every class and function that the rules converted as a refused span of its own, as well.

    One with gaps is asked for gap by gap. What has no torch in it, so that nothing was converted, is left out.
    """
    spans = refused_spans(translation)
    places = [SourceMapEntry(s.source_line, s.source_end_line, s.line, s.end_line) for s in spans]
    findings = [finding for span in spans for finding in span.findings]
    defined = definitions(translation.code)
    for name, (first, last) in definitions(translation.source).items():
        before = _lines(translation.source, first, last)
        gaps = any(first <= span.source_line <= last for span in spans)
        if gaps or name not in defined or before == _lines(translation.code, *defined[name]):
            continue
        reason = "the rules convert it; write it as you would: yours is taken only if a check finds it equivalent"
        findings.append(Finding(Span(first, 0, last, 0), name, ASKED, Severity.GAP, reason))
        places.append(SourceMapEntry(first, last, *defined[name]))
    return replace(translation, findings=tuple(findings), source_map=tuple(places))


def definitions(code: str) -> dict[str, tuple[int, int]]:
    """First and last line of every class and function at the top level, decorators included; by name."""
    ranges = {}
    for node in ast.parse(code).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            ranges[node.name] = (first, node.end_lineno or node.lineno)
    return ranges


def definition(code: str, name: str) -> str:
    """The text of a class or function at the top level; empty where there is none."""
    place = definitions(code).get(name)
    return _lines(code, *place) if place else ""


def users(code: str, name: str) -> set[str]:
    """The definitions at the top level that use this one, also by way of others."""
    named: dict[str, set[str]] = {}
    for user, place in definitions(code).items():
        nodes = ast.walk(ast.parse(_lines(code, *place)))
        named[user] = {node.id for node in nodes if isinstance(node, ast.Name)}
    functions: set[str] = set()
    while more := {n for n, words in named.items() if words & ({name} | functions)} - functions - {name}:
        functions |= more
    return functions


def replaced(
    translation: Translation, answers: Mapping[int, str], head: str = "", spans: Sequence[RefusedSpan] | None = None
) -> Translation:
    """The translation with answers in place of its refused spans, by number, and ``head`` behind its imports.

    An answer is indented as the span it replaces, however it was indented itself. Imports of torch that nothing needs
    any more go. The source map follows. ``spans`` are others than the refused ones.
    """
    spans = refused_spans(translation) if spans is None else spans
    lines = translation.code.splitlines()
    moves: list[tuple[int, int]] = []
    for span in sorted(spans, key=lambda span: -span.line):
        if span.number in answers:
            old = lines[span.line - 1 : span.end_line]
            new = indented(answers[span.number], _margin(old))
            lines[span.line - 1 : span.end_line] = new
            moves.append((span.end_line, len(new) - len(old)))
    for first, last in reversed(_unused_torch_imports("\n".join(lines) + "\n")):
        del lines[first - 1 : last]
        moves.append((last + 1, first - last - 1))
    if head.strip():
        place, added = _after_imports(lines), head.strip("\n").split("\n")
        lines[place:place] = added
        moves.append((place + 1, len(added)))

    def moved(line: int) -> int:
        return line + sum(by for behind, by in moves if line >= behind)

    entries = tuple(replace(e, line=moved(e.line), end_line=moved(e.end_line)) for e in translation.source_map)
    return replace(translation, code="\n".join(lines) + "\n", source_map=entries)


def _unused_torch_imports(code: str) -> list[tuple[int, int]]:
    """First and last lines of the torch imports that the rules had to keep and that nothing needs any more."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return []
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    unused = []
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            source = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            bound = {bound_as(a) for a in node.names}
            if all(name.split(".")[0] == "torch" for name in source) and not bound & used:
                unused.append((node.lineno, node.end_lineno or node.lineno))
    return unused


def _lines(text: str, first: int, last: int) -> str:
    return "\n".join(text.splitlines()[first - 1 : last]) + "\n"


def _margin(lines: list[str]) -> str:
    first = next((line for line in lines if line.strip()), "")
    return first[: len(first) - len(first.lstrip())]


def indented(text: str, margin: str = "") -> list[str]:
    """The lines of a piece of code with this margin in place of its own."""
    lines = text.strip("\n").split("\n")
    own = len(_margin(lines))
    return [margin + line[own:] if line.strip() else "" for line in lines]


def place_of(part: str, code: str) -> tuple[int, int] | None:
    """First and last line at which a piece stands in a program, however it is indented there."""
    wanted = [line.strip() for line in part.strip("\n").split("\n")]
    lines = [line.strip() for line in code.split("\n")]
    for first in range(len(lines) - len(wanted) + 1):
        if lines[first : first + len(wanted)] == wanted:
            return first + 1, first + len(wanted)
    return None


def _after_imports(lines: list[str]) -> int:
    """The index behind the last import at the top level that stands before any definition."""
    place = 0
    for index, line in enumerate(lines):
        if line.startswith(("import ", "from ")):
            place = index + 1
            while "(" in line and ")" not in lines[place - 1]:
                place += 1
        elif line.startswith(("class ", "def ", "@")):
            break
    return place
