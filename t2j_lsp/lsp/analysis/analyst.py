"""Keeps analyses up to date: the whole file when there is time, and only what was edited when there is none.

After an edit, the definitions whose text changed are translated together with what they depend on; everything else is
carried over. That may miss what other parts of the file tell about them, so a translation of the whole file follows.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from t2j_lsp.contract import (
    MARK,
    Finding,
    Options,
    Outcome,
    Rewrite,
    Severity,
    SourceError,
    Span,
    TextEdit,
    Translation,
    plain_code,
)
from t2j_lsp.files import helper_modules
from t2j_lsp.files.importers import used_elsewhere
from t2j_lsp.files.sources import neighbours
from t2j_lsp.lsp.positions import split_lines
from t2j_lsp.translate import Neighbours

from .intact import BOM, Intact, LeftOut, intact, translated, tree_of
from .model import IGNORE_FILE, AnalysedDefinition, Analysis, ConversionSettings, shifted
from .scripts import runs
from .units import Unit, closure, cut, only

MAX_PROGRAMS = 64
"""Programs whose last analysis is kept, so that memory stays bounded over a day."""

_IGNORE = re.compile(r"#\s*t2j:\s*ignore(-file)?(?:\[([\w\s,-]*)\])?")


@dataclass(frozen=True)
class UnitAnalysis:
    """What was found in one unit. Lines count from 0 at the unit's first line."""

    findings: tuple[Finding, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    helpers: tuple[tuple[str, str], ...] = ()
    """The helpers of the translation, by the names that they have in it."""
    edited: tuple[int, ...] = ()
    """The lines on which edits start that convert something."""


@dataclass
class Added:
    """What the conversion of a file adds at its top level, by name: import lines and definitions."""

    imports: dict[str, str]
    definitions: dict[str, str]


@dataclass
class ProgramState:
    """The last analysis of one program."""

    text: str
    settings: ConversionSettings
    made: Intact
    """What of ``text`` is analysed."""
    units: list[Unit]
    pieces: list[UnitAnalysis]
    translation: Translation | None = None
    """The translation of exactly ``made.text``."""
    problem: str | None = None
    added: Added | None = None
    """What ``translation`` adds, once somebody asked."""


class Analyst:
    """Analyses programs and remembers the last state of each."""

    def __init__(self) -> None:
        self._states: OrderedDict[str, ProgramState] = OrderedDict()
        self._project: tuple[str, Neighbours] | None = None
        """The program that was analysed last, and what is known of the files that it imports."""

    def forget(self, key: str) -> None:
        self._states.pop(key, None)
        if self._project is not None and self._project[0] == key:
            self._project = None

    def quick(self, key: str, text: str, settings: ConversionSettings, path: str | None) -> Analysis | None:
        """The analysis of a text from the last one and its edited units; None where a full one is needed first.

        Raises SyntaxError where the text can't be parsed and could be before: the last analysis is a better one.
        """
        state = self._states.get(key)
        as_functions = settings.target == "jax"  # whether a class is converted depends on those that it is used with
        if state is None or state.settings != settings or as_functions and state.text != text:
            intact(text, self._may_be_broken(key))
            return None
        if state.text == text and state.translation is not None:
            return self._analysis(state, complete=True)
        made = intact(text, self._may_be_broken(key))
        lines = split_lines(made.text.removeprefix(BOM))
        units = cut(lines, made.tree, {u.text: u.about for u in state.units})
        old: dict[str, list[UnitAnalysis]] = {}
        for unit, piece in zip(state.units, state.pieces, strict=True):
            old.setdefault(unit.text, []).append(piece)
        pieces: list[UnitAnalysis | None] = [known.pop(0) if (known := old.get(unit.text)) else None for unit in units]
        changed = [index for index, piece in enumerate(pieces) if piece is None]
        problem = None
        if changed:
            part = only(lines, units, closure(units, changed))
            new_pieces: dict[int, UnitAnalysis] = {}
            try:
                edited = {line for i in changed for line in range(units[i].first, units[i].last + 1)}
                project = self._known_project(key)
                done, translation = translated(Intact(part, tree_of(part)), options(settings, path), project, edited)
                self._project = key, project
            except SourceError as error:
                problem = str(error)
            else:
                new_pieces = dict(zip(changed, pieces_of(translation, [units[i] for i in changed]), strict=True))
                made = replace(made, left=(*made.left, *done.left))
            pieces = [new_pieces.get(i, UnitAnalysis()) if piece is None else piece for i, piece in enumerate(pieces)]
        # What is too large for a translation is no unit: it is looked at again with the next edit.
        gone = {one.first for one in made.left}
        kept = [
            (unit, piece or UnitAnalysis()) for unit, piece in zip(units, pieces, strict=True) if unit.first not in gone
        ]
        new = ProgramState(text, settings, made, [u for u, _ in kept], [p for _, p in kept], None, problem)
        self._keep(key, new)
        return self._analysis(new, complete=False)

    def full(self, key: str, text: str, settings: ConversionSettings, path: str | None) -> Analysis:
        """The analysis of a text as a whole. Raises SyntaxError where it can't be parsed and could be before."""
        return self._analysis(self.state(key, text, settings, path), complete=True)

    def state(self, key: str, text: str, settings: ConversionSettings, path: str | None) -> ProgramState:
        """The state with a translation of the whole text."""
        state = self._states.get(key)
        if state is not None and state.text == text and state.settings == settings and state.translation is not None:
            self._states.move_to_end(key)
            return state
        made = intact(text, self._may_be_broken(key))
        problem = None
        self._project = None
        project = Neighbours()
        try:
            made, translation = translated(made, options(settings, path), project)
            self._project = key, project
        except SourceError as error:
            translation, problem = Translation(made.text, made.text), str(error)
        lines = split_lines(made.text.removeprefix(BOM))
        units = cut(lines, made.tree, {u.text: u.about for u in state.units} if state is not None else {})
        new = ProgramState(text, settings, made, units, list(pieces_of(translation, units)), translation, problem)
        self._keep(key, new)
        return new

    def _known_project(self, key: str) -> Neighbours:
        """What is known of the files that a program imports: not kept if an analysis with it is given up halfway."""
        known, self._project = self._project, None
        return known[1] if known is not None and known[0] == key else Neighbours()

    def last(self, key: str) -> ProgramState | None:
        return self._states.get(key)

    def _may_be_broken(self, key: str) -> bool:
        """Whether a text that does not parse is analysed as far as it does: there is no analysis from when it did."""
        state = self._states.get(key)
        return state is None or state.made.problem is not None

    def _keep(self, key: str, state: ProgramState) -> None:
        self._states[key] = state
        self._states.move_to_end(key)
        while len(self._states) > MAX_PROGRAMS:
            self._states.popitem(last=False)

    def _analysis(self, state: ProgramState, complete: bool) -> Analysis:
        findings: list[Finding] = []
        rewrites: list[Rewrite] = []
        outcomes: list[Outcome] = []
        definitions: list[AnalysedDefinition] = []
        bom = state.text.startswith(BOM)
        for unit, piece in zip(state.units, state.pieces, strict=True):
            placed = [replace(f, span=_placed(f.span, unit.first, bom)) for f in piece.findings]
            findings += placed
            rewrites += [replace(r, span=_placed(r.span, unit.first, bom)) for r in piece.rewrites]
            outcomes += [replace(o, span=_placed(o.span, unit.first, bom)) for o in piece.outcomes]
            definitions += _definitions(unit, piece)
        left = state.made.left
        kept = sorted([*_unignored(findings, state.text), *(one.finding for one in left)], key=lambda f: f.span)
        definitions = [_without_left(definition, left) for definition in definitions]
        aliases = dict(pair for unit in state.units for pair in unit.about.aliases)
        converted = sum(r.jax is not None for r in rewrites)
        helpers = dict(pair for written in {piece.helpers for piece in state.pieces} for pair in written)
        abouts = [unit.about for unit in state.units]
        is_program, run_by = runs(
            (name for about in abouts for name in about.trains), (name for about in abouts for name in about.starts)
        )
        return Analysis(
            tuple(kept),
            tuple(rewrites),
            tuple(definitions),
            aliases,
            complete,
            converted,
            state.problem or state.made.problem,
            tuple(outcomes),
            helpers,
            broken=state.made.problem is not None,
            is_program=is_program,
            run_by=run_by,
        )


def options(settings: ConversionSettings, path: str | None) -> Options:
    """The translator's options. Helpers stand in the text itself where a file may have them in a module of its own."""
    return Options(
        target=settings.target,  # type: ignore[arg-type]
        x64=settings.x64,
        helpers="inline" if settings.helpers == "auto" else settings.helpers,  # type: ignore[arg-type]
        init=settings.init,  # type: ignore[arg-type]
        scan=settings.scan,
        layout=settings.layout,  # type: ignore[arg-type]
        path=path,
        resolve=neighbours(Path(path)) if path else None,
        used_elsewhere=used_elsewhere(Path(path)) if path else None,
        helper_module=helper_import(path) if path else helper_modules.NAME,
    )


def helper_import(path: str) -> str:
    """The name under which a file, or its conversion beside it, imports the helper module that stands there too."""
    return helper_modules.home(Path(path), Path(path).parent)[1]


def pieces_of(translation: Translation, units: Iterable[Unit]) -> Iterable[UnitAnalysis]:
    """A translation cut into units, which come in order."""
    starts = line_starts(translation.source)
    edited = sorted(line_of(starts, e.start) for e in translation.edits if not e.head and not _only_marks(e))
    findings = sorted(translation.findings, key=lambda f: f.span.line)
    rewrites = sorted(translation.rewrites, key=lambda r: r.span.line)
    outcomes = sorted(translation.outcomes, key=lambda o: o.span.line)
    ordered = [
        [f.span.line for f in findings],
        [r.span.line for r in rewrites],
        [o.span.line for o in outcomes],
        edited,
    ]
    for unit in units:
        inside = (slice(bisect_left(lines, unit.first), bisect_right(lines, unit.last)) for lines in ordered)
        some_findings, some_rewrites, some_outcomes, some_edits = inside
        yield UnitAnalysis(
            tuple(replace(f, span=shifted(f.span, -unit.first)) for f in findings[some_findings]),
            tuple(replace(r, span=shifted(r.span, -unit.first)) for r in rewrites[some_rewrites]),
            tuple(replace(o, span=shifted(o.span, -unit.first)) for o in outcomes[some_outcomes]),
            translation.needs.written,
            tuple(line - unit.first for line in edited[some_edits]),
        )


def _only_marks(edit: TextEdit) -> bool:
    """Whether an edit puts a comment above what stays as it is, and converts nothing."""
    return edit.start == edit.end and edit.new.lstrip().startswith(MARK)


def line_starts(source: str) -> list[int]:
    """Where each line of a text (without its byte order mark) starts."""
    starts, position = [], 0
    for line in split_lines(source.removeprefix(BOM)):
        starts.append(position)
        position += len(line)
    return starts


def line_of(starts: list[int], index: int) -> int:
    """The line, from 1, that holds a text index."""
    return bisect_right(starts, index)


def moved(edits: Iterable[TextEdit], source: str, text: str) -> list[TextEdit]:
    """Edits of ``source`` at the same lines and columns of ``text``."""
    old, new = line_starts(source), line_starts(text)

    def place(index: int) -> int:
        line = line_of(old, index)
        return new[line - 1] + index - old[line - 1]

    return [TextEdit(place(e.start), place(e.end), e.new) for e in edits]


def _placed(span: Span, first: int, bom: bool) -> Span:
    span = shifted(span, first)
    if bom and span.line == 1:
        span = replace(span, column=span.column + 1)
    if bom and span.end_line == 1:
        span = replace(span, end_column=span.end_column + 1)
    return span


def _definitions(unit: Unit, piece: UnitAnalysis) -> Iterable[AnalysedDefinition]:
    for kind, name, first, last, depth in unit.about.skeletons:
        inside = [f for f in piece.findings if first <= f.span.line <= last]
        gaps = tuple(f.message for f in inside if f.severity is Severity.GAP)
        notes = tuple(f.message for f in inside if f.severity is Severity.NOTE and f.differs)
        refused = next((f.reason for f in inside if f.code == "training-loop"), None) if kind == "loop" else None
        edits = sum(first <= line <= last for line in piece.edited)
        yield AnalysedDefinition(
            kind,
            name,
            first + unit.first,
            last + unit.first,
            depth,
            edits,
            gaps,
            notes,
            refused,
        )


def _without_left(definition: AnalysedDefinition, left: Iterable[LeftOut]) -> AnalysedDefinition:
    """A definition with lines that are not analysed is not converted: it would be half of it."""
    inside = next((one for one in left if definition.line <= one.first and one.last <= definition.end_line), None)
    return definition if inside is None else replace(definition, refused=f"line {inside.line}: {inside.reason}")


def _unignored(findings: list[Finding], text: str) -> list[Finding]:
    """The findings that no ``# t2j: ignore`` comment is about; it stands on their line, or alone on the line above."""
    if "t2j:" not in text:
        return findings
    ignored: dict[int, set[str]] = {}
    for number, line in enumerate(split_lines(text), 1):
        for match in _IGNORE.finditer(line):
            codes = {plain_code(code) for code in (match[2] or IGNORE_FILE).split(",")}
            if match[1]:
                ignored.setdefault(0, set()).update(codes)
                continue
            alone = line.lstrip().startswith("#")
            ignored.setdefault(number + 1 if alone else number, set()).update(codes)
    everywhere = ignored.get(0, set())

    def counts(finding: Finding) -> bool:
        ignored_here = everywhere | ignored.get(finding.span.line, set()) | ignored.get(finding.span.end_line, set())
        return not ignored_here & {finding.code, IGNORE_FILE}

    return [f for f in findings if counts(f)]
