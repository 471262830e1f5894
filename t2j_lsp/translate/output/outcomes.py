"""What the statements around some places became, read off the output: for hovers.

A place is a node that has no JAX form of its own: a call of an optimizer, a decorator, a ``with`` block, an operator
that writes in place. Its outcome is what stands in the output where the statement around it stood.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from textwrap import dedent

from t2j_lsp.contract import Finding, Outcome, Rewrite, Severity, SourceMapEntry, Span
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.source.text import Edit

from .places import Place, places

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
COMPILED = -900
"""Priority below which an insertion is a compiled function, and no line of the statement that it stands above."""


class Outcomes:
    """The places of one source, and the lines of the output that tell what became of each.

    Made before the output's long lines are broken; ``entries`` follow them through that, and ``read`` takes the texts.
    """

    def __init__(self, context: Context, own: frozenset[Edit], output: ast.Module) -> None:
        self.ctx = context
        self.source = context.source
        self._lay_out(own)
        self.steps = _steps(output, set(context.plan.train_steps.values()))
        self.places = list(places(context))
        self._differs: dict[tuple[int, int], bool] = {}
        lines: dict[tuple[int, int], SourceMapEntry | None] = {}
        for part in dict.fromkeys(part for place in self.places for part in (place.range, place.head)):
            lines[part] = self._lines(*part)
        self._found = [*lines, *self.steps]
        known = [*lines.values(), *self.steps.values()]
        self._present = [entry is not None for entry in known]
        self.entries = [entry for entry in known if entry is not None]

    # --- from the source to the output ----------------------------------------------------------------------------

    def _lay_out(self, own: frozenset[Edit]) -> None:
        """Where each edit is in the output."""
        self.edits: list[Edit] = []
        self.targets: list[tuple[int, int]] = []
        position = length = 0
        out: list[str] = []
        for edit in sorted(set(self.ctx.edits.made), key=lambda e: (e.start, e.end, e.priority)):
            if edit.start < position:
                continue
            out += [self.source.text[position : edit.start], edit.new]
            length += edit.start - position
            self.edits.append(edit)
            self.targets.append((length, length + len(edit.new)))
            length += len(edit.new)
            position = edit.end
        self.text = "".join([*out, self.source.text[position:]])
        self.breaks = [0] + [m.end() for m in _LINE_BREAK.finditer(self.text)]
        self.begins = [e.start for e in self.edits]
        self.foreign = [e not in own or e.priority < COMPILED for e in self.edits]

    def _lines(self, start: int, end: int) -> SourceMapEntry | None:
        """The lines of the output that stand for a part of the source; None where nothing does."""
        begin, stop = self._moved(start, False), self._moved(end, True)
        at = bisect_left(self.begins, start)
        if at and self.edits[at - 1].end > start:
            at -= 1
        for index in range(at, bisect_right(self.begins, end)):
            edit = self.edits[index]
            overlaps = edit.end > start and edit.start < end
            if overlaps or edit.start == edit.end and not self.foreign[index]:
                begin, stop = min(begin, self.targets[index][0]), max(stop, self.targets[index][1])
        text = self.text[begin:stop]
        if text.strip() in ("", "pass") and self.source.text[start:end].strip() != "pass":
            return None
        begin += len(text) - len(text.lstrip())
        stop -= len(text) - len(text.rstrip())
        first, last = self.source.line_of(start), self.source.line_of(max(start, end - 1))
        return SourceMapEntry(first, last, self._line(begin), self._line(max(begin, stop - 1)))

    def _moved(self, index: int, ends: bool) -> int:
        """An index of the source in the output: behind what is inserted there, or in front of it where it ends."""
        at = (bisect_left if ends else bisect_right)(self.begins, index)
        if not at:
            return index
        edit, (start, end) = self.edits[at - 1], self.targets[at - 1]
        if edit.end > index:
            return end if ends else start
        return end + index - edit.end

    def _line(self, index: int) -> int:
        return bisect_right(self.breaks, index)

    # --- reading --------------------------------------------------------------------------------------------------

    def read(
        self,
        code: str,
        source_map: Sequence[SourceMapEntry],
        entries: Iterable[SourceMapEntry],
        findings: Sequence[Finding],
        rewritten: Sequence[Rewrite],
    ) -> tuple[tuple[Rewrite, ...], tuple[Outcome, ...]]:
        """The rewrites, with whether the output has them, and the outcomes in order of place.

        ``entries`` are those of this object as they are after long lines were broken, in the same order.
        """
        lines = _LINE_BREAK.split(code)
        left = iter(entries)
        texts: dict[object, str] = {
            key: _text(lines, next(left)) if present else ""
            for key, present in zip(self._found, self._present, strict=True)
        }
        forms = _with_written(rewritten, lines, source_map)
        known = {one.span for one in forms if one.written}
        gaps = _Reasons([f for f in findings if f.severity is Severity.GAP])
        out = [self._outcome(place, texts, gaps) for place in self.places if place.span not in known]
        return tuple(forms), tuple(sorted(out, key=lambda o: (o.span.line, o.span.column, -o.span.end_line)))

    def _outcome(self, place: Place, texts: dict[object, str], gaps: _Reasons) -> Outcome:
        step = self._step(place.statement)
        if f"def {step}" in texts:
            return Outcome(place.span, place.name, "converted", texts[step], step=texts[f"def {step}"])
        code = texts[place.range]
        if not texts[place.head]:
            return Outcome(place.span, place.name, "removed", code)
        start, end = place.range
        if self._changed(start, end, code):
            return Outcome(place.span, place.name, "converted", code)
        reason = gaps.covering(place.span)
        return Outcome(place.span, place.name, "left" if reason else "kept", code, reason)

    def _changed(self, start: int, end: int, code: str) -> bool:
        """Whether the statement there is written otherwise now; many places may be in one."""
        if (start, end) not in self._differs:
            self._differs[start, end] = plain(code) != plain(self.source.text[start:end])
        return self._differs[start, end]

    def _step(self, statement: ast.AST) -> str:
        """The name of the compiled function that a statement moved into; empty if it didn't."""
        place: ast.AST | None = statement
        while isinstance(place, ast.stmt):
            if place in self.ctx.plan.train_steps:
                return self.ctx.plan.train_steps[place]
            place = self.ctx.source.parents.get(place)
        return ""


def _with_written(
    rewritten: Iterable[Rewrite], lines: Sequence[str], source_map: Iterable[SourceMapEntry]
) -> list[Rewrite]:
    """The rewrites, each with whether the output has its text: looked for from where its statement stands."""
    parts = [plain(line) for line in lines]
    starts = [0, *accumulate(map(len, parts))]
    everything = "".join(parts)
    places = {entry.source_line: entry.line for entry in source_map}
    out = []
    for one in rewritten:
        text = plain(one.jax or "")
        near = max(0, places.get(one.span.line, 1) - 8)
        found = bool(text) and (everything.find(text, starts[near]) >= 0 or text in everything)
        out.append(replace(one, written=found))
    return out


_MARK = re.compile(r"^\s*# TODO\(t2j\).*$", re.MULTILINE)
_FORM = str.maketrans("", "", " \t\r\n\f,")


def plain(code: str) -> str:
    """Code without what breaking its lines changes, white space and commas, and without marks of gaps."""
    return (_MARK.sub("", code) if "TODO(t2j)" in code else code).translate(_FORM)


def _text(lines: Sequence[str], entry: SourceMapEntry) -> str:
    return dedent("\n".join(lines[entry.line - 1 : entry.end_line])).strip("\n")


class _Reasons:
    """The reasons of gaps, to be asked for by place."""

    def __init__(self, gaps: Sequence[Finding]) -> None:
        self._gaps = sorted(gaps, key=lambda f: (f.span.line, f.span.column))
        self._starts = [(f.span.line, f.span.column) for f in self._gaps]
        self._reach = list(accumulate(((f.span.end_line, f.span.end_column) for f in self._gaps), max))

    def covering(self, span: Span) -> str:
        """The reason of the first gap that holds a place; empty where none does."""
        first = bisect_left(self._reach, (span.end_line, span.end_column))
        return self._gaps[first].reason if first < bisect_right(self._starts, (span.line, span.column)) else ""


def _steps(output: ast.Module, names: set[str]) -> dict[str, SourceMapEntry | None]:
    """The lines of each compiled function, as ``def name``, and those of the first statement that calls it."""
    found: dict[str, SourceMapEntry | None] = {}
    if not names:
        return found
    for node in output.body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found[f"def {node.name}"] = SourceMapEntry(0, 0, first, node.end_lineno or first)
    for inner in ast.walk(output):
        if isinstance(inner, ast.Assign | ast.Expr) and isinstance(call := inner.value, ast.Call):
            name = call.func.id if isinstance(call.func, ast.Name) else ""
            if name in names:
                found.setdefault(name, SourceMapEntry(0, 0, inner.lineno, inner.end_lineno or inner.lineno))
    return {key: entry for key, entry in found.items() if key.removeprefix("def ") in found}
