"""What an analysis says: findings, torch expressions with their JAX form, and the definitions of the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeVar

from t2j_lsp.contract import HELPER_LINES, Finding, Outcome, Rewrite, Span

DefinitionKind = Literal["class", "function", "loop"]
IGNORE_FILE = "*"
Placed = TypeVar("Placed", Rewrite, Outcome)


@dataclass(frozen=True)
class ConversionSettings:
    """The settings that change what a text becomes."""

    target: str = "nnx"
    x64: bool = False
    helpers: str = "inline"
    init: str = "torch"
    scan: bool = False
    layout: str = "nchw"
    helper_lines: int = HELPER_LINES


@dataclass(frozen=True)
class AnalysedDefinition:
    """A class, a function or a loop: lines from 1, decorators included. ``edits`` counts what would change in it."""

    kind: DefinitionKind
    name: str
    line: int
    end_line: int
    depth: int
    edits: int = 0
    gaps: tuple[str, ...] = ()
    """The reasons for what stays as it is."""
    notes: tuple[str, ...] = ()
    """The differences to know about."""
    refused: str | None = None
    """Why it is not converted at all: training code that has to convert as a whole or stay."""


@dataclass(frozen=True)
class Analysis:
    """An analysis of one revision of a program. Spans hold in that revision's text."""

    findings: tuple[Finding, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()
    definitions: tuple[AnalysedDefinition, ...] = ()
    aliases: dict[str, str] = field(default_factory=dict)
    """The qualified name behind each imported name."""
    complete: bool = True
    """Whether the whole file was translated; otherwise the changed definitions with what they depend on."""
    converted: int = 0
    problem: str | None = None
    """Why the text can't be translated as a whole."""
    outcomes: tuple[Outcome, ...] = ()
    """What became of the statements around what is no torch expression with a form of its own."""
    helpers: dict[str, str] = field(default_factory=dict)
    """The helpers of the conversion, by the names that they have in it."""
    broken: bool = False
    """Whether the text does not parse: what is said is about the definitions that do."""
    is_program: bool = False
    """Whether the file does something when it is run: it trains at its top level, or has a main program."""
    run_by: tuple[str, ...] = ()
    """The functions that are run then: ``main``, and those that train."""

    @cached_property
    def by_line(self) -> dict[int, list[Rewrite]]:
        """The torch expressions that touch each line, outer ones first."""
        return _by_line(self.rewrites)

    @cached_property
    def outcomes_by_line(self) -> dict[int, list[Outcome]]:
        return _by_line(self.outcomes)

    @cached_property
    def findings_by_line(self) -> dict[int, list[Finding]]:
        """The findings that begin on each line."""
        by_line: dict[int, list[Finding]] = {}
        for one in self.findings:
            by_line.setdefault(one.span.line, []).append(one)
        return by_line

    def at(self, line: int, column: int) -> Rewrite | None:
        """The innermost torch expression at a place; ``line`` from 1."""
        return _innermost(self.by_line.get(line, ()), line, column)

    def shown_at(self, line: int, column: int) -> Rewrite | Outcome | None:
        """What tells what the code at a place became: the innermost expression that the conversion writes, or a place.

        ``line`` counts from 1.
        """
        rewrite = _innermost([r for r in self.by_line.get(line, ()) if r.written], line, column)
        outcome = _innermost(self.outcomes_by_line.get(line, ()), line, column)
        if rewrite is None or outcome is None:
            return rewrite or outcome
        return outcome if _inside(outcome.span, rewrite.span) else rewrite


def _by_line(placed: Iterable[Placed]) -> dict[int, list[Placed]]:
    by_line: dict[int, list[Placed]] = {}
    for one in placed:
        for line in range(one.span.line, one.span.end_line + 1):
            by_line.setdefault(line, []).append(one)
    return by_line


def _innermost(placed: Iterable[Placed], line: int, column: int) -> Placed | None:
    place = (line, column)
    innermost = None
    for one in placed:
        span = one.span
        if (span.line, span.column) <= place <= (span.end_line, span.end_column):
            if innermost is None or _inside(span, innermost.span):
                innermost = one
    return innermost


def _inside(inner: Span, outer: Span) -> bool:
    return (outer.line, outer.column) <= (inner.line, inner.column) and (inner.end_line, inner.end_column) <= (
        outer.end_line,
        outer.end_column,
    )


def shifted(span: Span, lines: int) -> Span:
    """The span, so many lines further down."""
    return span if not lines else replace(span, line=span.line + lines, end_line=span.end_line + lines)


class LineMap:
    """Where the lines of an analysed text are in the current text, as far as they are unchanged.

    It follows the text edit by edit: what one edit touched has no place any more, what stands around it has.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = list(lines)
        self._origins: list[int | None] = list(range(len(self._lines)))
        self._places: dict[int, int] | None = None

    def follow(self, lines: Sequence[str]) -> None:
        """Take in the text as it is after another edit."""
        old, count = self._lines, min(len(self._lines), len(lines))
        before = next((i for i in range(count) if old[i] != lines[i]), count)
        rest = count - before
        behind = next((i for i in range(rest) if old[-1 - i] != lines[-1 - i]), rest)
        between: list[int | None] = [None] * (len(lines) - before - behind)
        self._origins = self._origins[:before] + between + self._origins[len(old) - behind :]
        self._lines = list(lines)
        self._places = None

    def to_new(self, line: int) -> int | None:
        """The current line of an analysed line, both from 0."""
        if self._places is None:
            self._places = {origin: place for place, origin in enumerate(self._origins) if origin is not None}
        return self._places.get(line)

    def to_old(self, line: int) -> int | None:
        """The analysed line of a current line."""
        return self._origins[line] if 0 <= line < len(self._origins) else None

    def span(self, span: Span) -> Span | None:
        """The current place of a span; None if an edit touched one of its lines."""
        first = self.to_new(span.line - 1)
        if first is None or any(
            self.to_new(line) != first + line - span.line + 1 for line in range(span.line, span.end_line)
        ):
            return None
        return shifted(span, first + 1 - span.line)


@dataclass(frozen=True)
class Hunk:
    """Lines of a text (from 1, inclusive) and what replaces them. ``last`` below ``first`` inserts in front of it."""

    first: int
    last: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class ConvertedPart:
    """A part of a file, converted: the lines that change, and what to know about it."""

    hunks: tuple[Hunk, ...]
    caveats: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()
    """What the new lines import from the helper module beside the file."""


@dataclass(frozen=True)
class Converted:
    """A whole file, converted."""

    code: str
    gaps: int
    notes: int
    helpers: tuple[str, ...] = ()
    """What it imports from the helper module beside it."""
    own_helpers: str | None = None
    """The text of the module of its own that holds its helpers, where they don't stand in it."""


@dataclass(frozen=True)
class Landmarks:
    """Lines of a conversion, from 0. ``first`` is where to start; ``places`` are those of the user's definitions.

    ``helpers`` are the first and last lines of what was copied into it, neighbours together.
    """

    first: int = 0
    places: tuple[tuple[str, int], ...] = ()
    helpers: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class ConversionScope:
    """What to convert: one expression, whole statements on ``lines``, or all that is ``exact``."""

    kind: Literal["expression", "lines", "exact"]
    span: Span | None = None
    first: int = 0
    last: int = 0


def stands_alone(form: str) -> bool:
    """Whether a JAX form may replace its expression and nothing else: what draws needs rngs from around it."""
    return re.search(r"\brngs\b", form) is None


class ConversionRefused(Exception):
    """A conversion that can't be done, with the reason for the user."""


class SyntaxProblem(Exception):
    """The text can't be parsed."""


REFUSALS = (ConversionRefused, SyntaxProblem)
"""The errors of the analysis process that are answers."""
