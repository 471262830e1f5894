"""The verdict of a check: by stages, on objects, on a file and what of it ran, and how what ran was shut in."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from .differences import Divergence, Explanation
from .translation import JSON_VERSION


class Result(enum.StrEnum):
    """The result of one stage of a check."""

    PASS = "pass"
    FAIL = "fail"
    NOT_RUN = "not run"


class VerdictKind(enum.StrEnum):
    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    UNCHECKED = "unchecked"


STAGES: tuple[str, ...] = ("spec", "numeric", "behavioral")


@dataclass
class StageResult:
    """What one stage observed. Errors are the largest over everything in ``observed``."""

    result: Result = Result.NOT_RUN
    reason: str | None = None
    max_abs_err: float | None = None
    max_rel_err: float | None = None
    observed: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "result": str(self.result)}


@dataclass
class ObjectVerdict:
    """The verdict on one class or function."""

    name: str
    verdict: VerdictKind
    reason: str | None = None
    stages: dict[str, StageResult] = field(default_factory=lambda: {s: StageResult() for s in STAGES})
    divergence: Divergence | None = None
    explanation: Explanation | None = None
    """Its values side by side, where that was asked for."""
    ran: tuple[str, ...] = ()
    """What of the PyTorch file ran on both sides for it, as `check.coverage` names it. Not in the report."""

    def to_json(self) -> dict[str, Any]:
        asked = {"explanation": self.explanation.to_json()} if self.explanation else {}
        return {
            "name": self.name,
            "verdict": str(self.verdict),
            "reason": self.reason,
            "stages": {name: self.stages.get(name, StageResult()).to_json() for name in STAGES},
            "divergence": self.divergence.to_json() if self.divergence else None,
            **asked,
        }


@dataclass(frozen=True)
class NotRun:
    """A function, method or script of the PyTorch file that trains: no check runs it as a whole."""

    name: str
    line: int
    cell: int | None = None
    """In a notebook, its cell (from 1), and ``line`` counts in that."""

    @property
    def lines(self) -> str:
        return f"cell {self.cell}, line {self.line}" if self.cell is not None else f"line {self.line}"


UncoveredKind = Literal["class", "function", "method", "script", "branch"]


@dataclass(frozen=True)
class Uncovered:
    """Code of the PyTorch file that was converted and did not run on both sides, with its lines.

    ``class`` is a whole class, ``script`` statements at the top level (``<script>``), and ``branch`` a part of a
    definition that ran: the body of an ``if``, of a loop or of a handler.
    """

    name: str
    kind: UncoveredKind
    line: int
    end_line: int
    cell: int | None = None
    end_cell: int | None = None
    """In a notebook, the cells (from 1) in which ``line`` and ``end_line`` count."""

    @property
    def lines(self) -> str:
        if self.cell != self.end_cell:
            return f"cell {self.cell}, line {self.line} to cell {self.end_cell}, line {self.end_line}"
        return self._lines if self.cell is None else f"cell {self.cell}, {self._lines}"

    @property
    def _lines(self) -> str:
        return f"line {self.line}" if self.line == self.end_line else f"lines {self.line}-{self.end_line}"


@dataclass(frozen=True)
class Coverage:
    """What the verdict on a whole file is about.

    ``classes`` and ``functions`` count the checked objects by verdict; ``gaps`` are the lines of the conversion with a
    mark for a place that was left as PyTorch; ``training`` is the code that no check runs as a whole.
    """

    classes: dict[str, int] = field(default_factory=dict)
    functions: dict[str, int] = field(default_factory=dict)
    not_run: tuple[Uncovered, ...] = ()
    branches: tuple[Uncovered, ...] = ()
    """Parts that did not run of definitions that did. They are said, and don't decide."""
    training: tuple[NotRun, ...] = ()
    gaps: tuple[int, ...] = ()
    gap_cells: tuple[int, ...] = ()
    """In a notebook, the cell of each gap."""

    @property
    def complete(self) -> bool:
        """Whether every object is equivalent, everything that was converted ran, and nothing was left as it was."""
        kinds = {kind for counts in (self.classes, self.functions) for kind, number in counts.items() if number}
        return kinds <= {VerdictKind.EQUIVALENT} and not self.not_run and not self.gaps

    @property
    def text(self) -> str:
        """One line: ``2 of 2 classes equivalent; 4 functions not run; 8 places left as PyTorch``."""
        objects = ((self.classes, "class", "classes"), (self.functions, "function", "functions"))
        parts = [_of_all(counts, one, more) for counts, one, more in objects if sum(counts.values())]
        for kind, one, more in _UNCOVERED:
            number = sum(place.kind == kind for place in self.not_run)
            if number:
                parts.append(f"{_count(number, one, more)} not run")
        if any(place.kind == "script" for place in self.not_run):
            parts.append("top-level code not run")
        if self.branches:
            parts.append(f"{_count(len(self.branches), 'branch', 'branches')} not run")
        if self.gaps:
            parts.append(f"{_count(len(self.gaps), 'place', 'places')} left as PyTorch")
        return "; ".join(parts)

    def to_json(self) -> dict[str, Any]:
        lists = {name: [_given(one) for one in getattr(self, name)] for name in ("not_run", "branches", "training")}
        about = {"text": self.text, "complete": self.complete, "classes": self.classes, "functions": self.functions}
        cells = {"gap_cells": list(self.gap_cells)} if self.gap_cells else {}
        return {**about, **lists, "gaps": list(self.gaps), **cells}

    @staticmethod
    def from_json(form: dict[str, Any]) -> Coverage:
        return Coverage(
            dict(form["classes"]),
            dict(form["functions"]),
            tuple(Uncovered(**one) for one in form["not_run"]),
            tuple(Uncovered(**one) for one in form["branches"]),
            tuple(NotRun(**one) for one in form["training"]),
            tuple(form["gaps"]),
        )


def _given(one: NotRun | Uncovered) -> dict[str, Any]:
    """The fields of a place; its cells only where it has some."""
    return {name: value for name, value in asdict(one).items() if value is not None}


_UNCOVERED = (("class", "class", "classes"), ("function", "function", "functions"), ("method", "method", "methods"))


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _of_all(counts: dict[str, int], one: str, more: str) -> str:
    """``1 of 2 classes equivalent``."""
    total = sum(counts.values())
    return f"{counts.get(VerdictKind.EQUIVALENT, 0)} of {_count(total, one, more)} equivalent"


def file_verdict(kinds: Iterable[str], coverage: Coverage | None) -> VerdictKind:
    """The verdict on a file from those on its objects, and from what these cover where that was asked."""
    distinct = set(kinds)
    if VerdictKind.DIFFERENT in distinct:
        return VerdictKind.DIFFERENT
    if VerdictKind.UNCHECKED in distinct or not distinct or (coverage is not None and not coverage.complete):
        return VerdictKind.UNCHECKED
    return VerdictKind.EQUIVALENT


Holder = Literal["namespace", "bubblewrap", "landlock", "seccomp", "python", "watched", "none"]
"""What holds one part of a check's containment, the strongest where there are several.

``namespace``: a view of the system made for the check by the kernel; ``bubblewrap``: the same, made by that tool;
``landlock``: the kernel's rules on files, TCP and signals; ``seccomp``: a filter of system calls; ``python``: audit
hooks, which native code gets around; ``watched``: the checker measures and ends it; ``none``: nothing.
"""


@dataclass(frozen=True)
class Containment:
    """How a check was shut in on this system, and what this system does not hold."""

    files: Holder
    """Changes of files elsewhere than in the check's own folders."""
    reads: Holder
    """Reading files that are not the interpreter's, the project's, or named in the settings."""
    network: Holder
    """The network, and the unix sockets of other programs."""
    processes: Holder
    """Processes that outlive the check, and signals to others."""
    memory: Holder
    not_held: tuple[str, ...] = ()
    """What this system does not hold, in plain sentences without a full stop; empty where all of it is held."""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "not_held": list(self.not_held)}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Containment:
        return Containment(**{**data, "not_held": tuple(data["not_held"])})


@dataclass
class CheckReport:
    """The result of ``t2j check``: one verdict for each object and one for all of them."""

    device: str
    objects: list[ObjectVerdict] = field(default_factory=list)
    device_reason: str | None = None
    """Why it was the CPU, where a GPU was asked for."""
    not_run: list[NotRun] = field(default_factory=list)
    """Code that trains, of a file that was checked as a whole."""
    coverage: Coverage | None = None
    """What the verdict covers; None where objects were named, which the verdict is then on."""
    containment: Containment | None = None
    """How the code that ran was shut in; None where nothing ran."""
    notes: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> VerdictKind:
        return file_verdict((o.verdict for o in self.objects), self.coverage)

    @property
    def reason(self) -> str | None:
        """What the verdict covers in one line, where that is known."""
        return self.coverage.text if self.coverage is not None else None

    def to_json(self) -> dict[str, Any]:
        return {
            "version": JSON_VERSION,
            "verdict": str(self.verdict),
            "device": self.device,
            **({"device_reason": self.device_reason} if self.device_reason else {}),
            "objects": [o.to_json() for o in self.objects],
            **({"not_run": [_given(one) for one in self.not_run]} if self.not_run else {}),
            **({"coverage": self.coverage.to_json()} if self.coverage is not None else {}),
            **({"containment": self.containment.to_json()} if self.containment else {}),
            **({"notes": self.notes} if self.notes else {}),
        }
