"""Notebooks as programs that run: where a line of the joined program stands, and what cells display.

The checker works on the cells' Python as one program (`notebook`). What it reports is said by cell and line.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TypeVar

from t2j_lsp.contract import (
    CheckReport,
    Coverage,
    Divergence,
    Explanation,
    Location,
    NotRun,
    ObjectVerdict,
    ProgramReport,
    Uncovered,
    Value,
)

DISPLAY = "display"
"""What a notebook calls with the value of a cell's last expression."""

_LINES = re.compile(r"(?P<side>conver\w+[^:(]*[:(] ?)?\b(?P<word>lines?) (?P<first>\d+)(?:-(?P<last>\d+))?")
_PlacedT = TypeVar("_PlacedT", NotRun, Uncovered)


@dataclass(frozen=True)
class CellLines:
    """Where the lines of a joined program stand in a notebook, by the first line of each piece.

    A piece is ``(first line, cell from 1, what is taken off a line to get the one in the cell)``.
    """

    pieces: tuple[tuple[int, int, int], ...] = ()

    def place(self, line: int) -> tuple[int, int] | None:
        """The cell and the line in it, both from 1; None for a line of no cell."""
        index = bisect_right(self.pieces, line, key=lambda piece: piece[0]) - 1
        if index < 0:
            return None
        _, cell, off = self.pieces[index]
        return cell, line - off

    def named(self, first: int, last: int | None = None) -> str | None:
        """Lines as a text has them: ``cell 2, line 3``."""
        start, end = self.place(first), self.place(last or first)
        if start is None or end is None:
            return None
        if start == end:
            return f"cell {start[0]}, line {start[1]}"
        if start[0] == end[0]:
            return f"cell {start[0]}, lines {start[1]}-{end[1]}"
        return f"cell {start[0]}, line {start[1]} to cell {end[0]}, line {end[1]}"


@dataclass(frozen=True)
class NotebookProgram:
    """The cells of a notebook as one program."""

    text: str
    lines: CellLines


def with_displays(torch: NotebookProgram, jax: NotebookProgram) -> tuple[str, str]:
    """Both programs with a call of `DISPLAY` around the last expression of each cell that ends in one on both sides."""
    displayed = [_last_expressions(one) for one in (torch, jax)]
    common = displayed[0].keys() & displayed[1].keys()
    return _displaying(torch.text, [displayed[0][c] for c in common]), _displaying(
        jax.text, [displayed[1][c] for c in common]
    )


def _last_expressions(program: NotebookProgram) -> dict[int, ast.expr]:
    """The expressions that are displayed, by cell."""
    lines = program.text.split("\n")
    last: dict[int, ast.stmt] = {}
    for node in ast.parse(program.text).body:
        place = program.lines.place(node.lineno)
        if place is not None:
            last[place[0]] = node
    expressions = {}
    for cell, node in last.items():
        end = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset :]
        if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Await | ast.Yield) and b";" not in end:
            expressions[cell] = node.value
    return expressions


def _displaying(text: str, expressions: list[ast.expr]) -> str:
    lines = [line.encode() for line in text.split("\n")]
    for node in sorted(expressions, key=lambda n: n.lineno, reverse=True):
        last = (node.end_lineno or node.lineno) - 1
        lines[last] = lines[last][: node.end_col_offset] + b"))" + lines[last][node.end_col_offset :]
        first = node.lineno - 1
        call = f"{DISPLAY}((".encode()
        lines[first] = lines[first][: node.col_offset] + call + lines[first][node.col_offset :]
    return b"\n".join(lines).decode()


# --- what is reported -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cells:
    """The lines of both sides; None for a side that is no notebook."""

    torch: CellLines | None
    jax: CellLines | None

    def text(self, text: str | None, jax: bool = False) -> str | None:
        """A text with its lines by cell: those of PyTorch, or of the conversion where it says so, or ``jax`` does."""

        def place(match: re.Match[str]) -> str:
            side = self.jax if jax or match["side"] else self.torch
            named = side.named(int(match["first"]), int(match["last"] or match["first"])) if side is not None else None
            return match[0] if named is None else f"{match['side'] or ''}{named}"

        return None if text is None else _LINES.sub(place, text)

    def location(self, location: Location | None, side: CellLines | None) -> Location | None:
        """A place in a cell."""
        place = side.place(location.line) if location is not None and side is not None else None
        return location if location is None or place is None else Location(location.file, place[1], place[0])

    def divergence(self, divergence: Divergence | None) -> Divergence | None:
        """Where two programs part, by cells. An edit that mends it is one of the joined program: it is left out."""
        if divergence is None:
            return None
        places = self.location(divergence.torch, self.torch), self.location(divergence.jax, self.jax)
        return Divergence(*places, self.text(divergence.what) or "", self.text(divergence.cause, jax=True))

    def program(self, report: ProgramReport) -> ProgramReport:
        """A report on whole programs, by cells."""
        notes = [self.text(note, jax=note.startswith("line ")) or "" for note in report.notes]
        reason, failed = self.text(report.reason), self.text(report.failed)
        divergence = self.divergence(report.divergence)
        return replace(report, reason=reason, failed=failed, notes=notes, divergence=divergence)

    def check(self, report: CheckReport) -> CheckReport:
        """A report on classes and functions, by cells."""
        objects = [self.object(one) for one in report.objects]
        not_run = [self._placed(one) for one in report.not_run]
        covered = report.coverage and self.coverage(report.coverage)
        return replace(report, objects=objects, not_run=not_run, coverage=covered)

    def object(self, one: ObjectVerdict) -> ObjectVerdict:
        """A verdict on a class or function, by cells."""
        stages = {
            name: replace(stage, reason=self.text(stage.reason), observed=[self.text(o) or "" for o in stage.observed])
            for name, stage in one.stages.items()
        }
        reason, divergence = self.text(one.reason), self.divergence(one.divergence)
        explanation = one.explanation and self._explanation(one.explanation)
        return replace(one, reason=reason, stages=stages, divergence=divergence, explanation=explanation)

    def _explanation(self, explanation: Explanation) -> Explanation:
        steps = [
            replace(step, torch=self._value(step.torch, self.torch), jax=self._value(step.jax, self.jax))
            for step in explanation.steps
        ]
        return replace(explanation, steps=tuple(steps))

    def _value(self, value: Value | None, side: CellLines | None) -> Value | None:
        return value and replace(value, location=self.location(value.location, side))

    def coverage(self, coverage: Coverage) -> Coverage:
        """What verdicts cover, by cells."""
        places = [(self.jax.place(line) if self.jax is not None else None) or (0, line) for line in coverage.gaps]
        cells = tuple(cell for cell, _ in places) if self.jax is not None else ()
        return replace(
            coverage,
            not_run=tuple(map(self._placed, coverage.not_run)),
            branches=tuple(map(self._placed, coverage.branches)),
            training=tuple(map(self._placed, coverage.training)),
            gaps=tuple(line for _, line in places),
            gap_cells=cells,
        )

    def _placed(self, one: _PlacedT) -> _PlacedT:
        place = self.torch.place(one.line) if self.torch is not None else None
        if place is None or self.torch is None:
            return one
        if isinstance(one, NotRun):
            return replace(one, line=place[1], cell=place[0])
        end = self.torch.place(one.end_line) or place
        return replace(one, line=place[1], cell=place[0], end_line=end[1], end_cell=end[0])
