"""The values that cross t2j's internal borders: translations, findings, rule documentation, verdicts.

Standard library only, so that the command line, the language server, the checker and the rules can
all import it without cost. Lines are 1-based and columns are 0-based code points, as in ``ast``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

JSON_VERSION = 2
"""Version number in the ``--json`` output. 2: the verdict of ``check`` on a whole file has its ``coverage``."""

Target = Literal["nnx", "jax"]
HelperPlacement = Literal["inline", "module", "import"]


class T2JError(Exception):
    """A failure the user can act on. Its text says what happened, where, and what to do."""


class SourceError(T2JError):
    """The source text can't be read or parsed: exit code 2, nothing written."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class Fidelity(enum.StrEnum):
    """How close a rule's output is to its PyTorch source."""

    EXACT = "exact"
    CLOSE = "close"
    MANUAL = "manual"


FIDELITY_TEXT = {
    Fidelity.EXACT: "converted; the same result",
    Fidelity.CLOSE: "converted, with a difference to know about",
    Fidelity.MANUAL: "left as it is and marked",
}


EDITOR_PREFIX = "t2j-"
"""What a code has in front where diagnostics of many tools stand side by side."""
DIFFERS = "differs"
"""The code of what a check found, beside those of findings."""
FORMER_CODES = {"close": "note", "different": DIFFERS}
"""Codes of earlier versions that may still stand in ``# t2j: ignore`` comments and settings."""
NOTE_CODES = {Fidelity.EXACT: "exact", Fidelity.CLOSE: "note"}
"""The codes of what rules have to say of what they converted."""
SAME_CODES = frozenset({"exact", "kept"})
"""Codes of notes that ask for nothing: the result is the same."""
HINT_CODES = SAME_CODES | {"tensor-method"}
"""Codes of notes that an editor shows as a hint."""


def editor_code(code: str) -> str:
    """A finding's code as an editor shows it: ``t2j-no-rule``."""
    return f"{EDITOR_PREFIX}{code}"


def plain_code(code: str) -> str:
    """A code as it stands in a finding, from what a user wrote: with the editor's prefix, or of an earlier version."""
    code = code.strip().removeprefix(EDITOR_PREFIX)
    return FORMER_CODES.get(code, code)


class Severity(enum.StrEnum):
    """A gap is code left as it was; a note is code converted with something to know about it."""

    GAP = "gap"
    NOTE = "note"


@dataclass(frozen=True, order=True)
class Span:
    """A region of a text: 1-based lines, 0-based columns in code points, end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Finding:
    """Something to tell the user about one place of the source.

    ``code`` is stable and has a page in ``docs/findings.md`` (``no-rule``, ``refused``, ``note``, ...);
    ``name`` is the qualified torch name or the construct it is about.
    """

    span: Span
    name: str
    code: str
    severity: Severity
    reason: str

    @property
    def differs(self) -> bool:
        """Whether there is something to do or to know; a note may also say that nothing differs."""
        return self.code not in SAME_CODES

    @property
    def message(self) -> str:
        """What is said to the user: the torch name, where the reason does not say it, and the reason."""
        parts = self.name.split(".")
        said = ".".join(parts[-2:]) in self.reason or f".{parts[-1]}()" in self.reason
        return self.reason if said or parts[0] != "torch" else f"{self.name}: {self.reason}"

    def to_json(self) -> dict[str, Any]:
        return {
            "line": self.span.line,
            "column": self.span.column,
            "end_line": self.span.end_line,
            "end_column": self.span.end_column,
            "name": self.name,
            "code": self.code,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class SourceMapEntry:
    """One statement: its lines in the source and the lines it became (all 1-based, inclusive)."""

    source_line: int
    source_end_line: int
    line: int
    end_line: int


@dataclass(frozen=True)
class TextEdit:
    """Replace ``text[start:end]`` of the source (without byte order mark) by ``new``; insert where these are equal."""

    start: int
    end: int
    new: str
    head: bool = False
    """Whether it is about the file's imports and helpers, and not about a statement of its own."""


@dataclass(frozen=True)
class Rewrite:
    """One torch expression: its place, what it is called, and its JAX text; None where it stays as it is."""

    span: Span
    name: str
    jax: str | None
    channels_last: bool = False
    """Whether its value, or where it stands, has the channels last in the output."""
    written: bool = True
    """Whether the output has that text; if not, the statement around it became something else."""


OutcomeState = Literal["converted", "kept", "removed", "left"]


@dataclass(frozen=True)
class Outcome:
    """One place of the source, and what the statement that it stands in became in this conversion.

    For what is no expression with a JAX form of its own: parts of a training step, decorators, ``with`` blocks,
    indexing, operators that write in place. ``code`` is read off the output, lines broken and without indentation:
    empty where the statement is ``removed``, the code as it was where it is ``kept`` (it means the same in JAX) or
    ``left`` (it is still PyTorch; ``reason`` says why).
    """

    span: Span
    name: str
    state: OutcomeState
    code: str = ""
    reason: str = ""
    step: str = ""
    """The compiled function that the statement moved into; ``code`` is then the call of it."""


@dataclass(frozen=True)
class Needs:
    """What the output text asks for: import lines that were added and helpers that were copied."""

    imports: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()
    written: tuple[tuple[str, str], ...] = ()
    """The names under which helpers stand in the output, each with the helper's own."""


@dataclass(frozen=True)
class Options:
    """Settings of a translation.

    ``resolve`` maps an imported module, as ``(level, dotted name)`` with ``level`` counting leading
    dots, to its source text, or None where it can't be found: with it a class that is imported from
    a neighbouring file is known to be a module. ``x64`` keeps 64-bit dtypes.
    """

    target: Target = "nnx"
    x64: bool = False
    helpers: HelperPlacement = "inline"
    helper_module: str = "torch_helpers"
    path: str | None = None
    resolve: Callable[[int, str], str | None] | None = None


@dataclass(frozen=True)
class Translation:
    """The result of converting one text. The CLI, server, checker and prompts all read this value."""

    source: str
    code: str
    findings: tuple[Finding, ...] = ()
    source_map: tuple[SourceMapEntry, ...] = ()
    needs: Needs = field(default_factory=Needs)
    converted: int = 0
    edits: tuple[TextEdit, ...] = ()
    """What was changed, in order, without overlaps; ``code`` is the source with these, and with long lines broken."""
    rewrites: tuple[Rewrite, ...] = ()
    """The torch expressions among the statements that were rewritten one by one, for who explains or converts one."""
    outcomes: tuple[Outcome, ...] = ()
    """What became of the statements around places that an explanation is asked for."""
    helper_source: str | None = None
    """Text of the sibling helper module when ``Options.helpers`` is ``"module"``."""

    @property
    def gaps(self) -> tuple[Finding, ...]:
        """Places left as they were, each marked ``# TODO(t2j)`` in the output."""
        return tuple(f for f in self.findings if f.severity is Severity.GAP)

    @property
    def notes(self) -> tuple[Finding, ...]:
        """Places converted with a difference worth knowing."""
        return tuple(f for f in self.findings if f.severity is Severity.NOTE)

    def to_json(self, source: str, target: str) -> dict[str, Any]:
        """The ``--json`` form. ``source`` and ``target`` are the file names shown."""
        return {
            "version": JSON_VERSION,
            "source": source,
            "target": target,
            "converted": self.converted,
            "gaps": [f.to_json() for f in self.gaps],
            "notes": [f.to_json() for f in self.notes],
            "helpers": list(self.needs.helpers),
        }


@dataclass(frozen=True)
class RuleDoc:
    """What hover, ``t2j explain`` and the docs pages say of one torch name; read off the rule's own record."""

    name: str
    signature: str
    jax: str | None
    fidelity: Fidelity
    note: str | None = None
    reason: str | None = None
    subject: str = ""
    helpers: tuple[str, ...] = ()


@dataclass(frozen=True)
class HelperDoc:
    """What hover says of one helper: read off its source, and off ``rules/stock.py``."""

    name: str
    signature: str
    about: str
    """The first paragraph of its docstring, or the comment above it."""
    why: str = ""
    """Why the function of JAX, Flax or optax that looks like it does not do."""


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


@dataclass(frozen=True)
class Location:
    """A line of a file."""

    file: str
    line: int


@dataclass(frozen=True)
class Fix:
    """An edit of the converted file after which the check found the two programs to agree at the place."""

    file: str
    span: Span
    new: str
    title: str


@dataclass(frozen=True)
class Divergence:
    """Where the two programs part: a line on each side, and what differs there.

    ``cause`` is only there where it was tried: with ``fix`` applied, the two agree.
    """

    torch: Location | None
    jax: Location | None
    what: str
    cause: str | None = None
    fix: Fix | None = None


@dataclass(frozen=True)
class Value:
    """The value that a statement had on one side: where, its form, numbers about it, and the first of its elements.

    ``minimum`` to ``std`` are of the finite elements (their magnitudes, where these are complex) and None where there
    are none. Elements are in torch's order of axes; what is not finite is the text ``nan``, ``inf`` or ``-inf``.
    """

    location: Location | None
    text: str
    shape: tuple[int, ...]
    dtype: str
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    std: float | None = None
    values: tuple[float | str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        numbers = {"min": self.minimum, "max": self.maximum, "mean": self.mean, "std": self.std}
        place = {"file": self.location.file, "line": self.location.line} if self.location else {}
        form = {"text": self.text, "shape": list(self.shape), "dtype": self.dtype}
        return {**place, **form, **numbers, "values": list(self.values)}


@dataclass(frozen=True)
class Histogram:
    """How the finite elements of both sides fall between common edges, and how many are not finite."""

    edges: tuple[float, ...]
    torch: tuple[int, ...]
    jax: tuple[int, ...]
    torch_nonfinite: int = 0
    jax_nonfinite: int = 0


@dataclass(frozen=True)
class Worst:
    """The element at which two arrays are farthest apart, in torch's order of axes."""

    index: tuple[int, ...]
    torch: float | str
    jax: float | str


@dataclass(frozen=True)
class Step:
    """One statement, or one observation of a whole run such as a gradient, side by side.

    A statement that only one side has has no other value, and ``agree`` is then True: there is nothing to compare it
    with. Errors are None where the forms do not fit. ``layout`` says that the axes are in another order in JAX.
    """

    target: str
    agree: bool
    torch: Value | None
    jax: Value | None
    max_abs_err: float | None = None
    max_rel_err: float | None = None
    histogram: Histogram | None = None
    worst: Worst | None = None
    layout: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "agree": self.agree,
            "max_abs_err": self.max_abs_err,
            "max_rel_err": self.max_rel_err,
            "layout": self.layout,
            "torch": self.torch.to_json() if self.torch else None,
            "jax": self.jax.to_json() if self.jax else None,
            "histogram": asdict(self.histogram) if self.histogram else None,
            "worst": asdict(self.worst) if self.worst else None,
        }


@dataclass(frozen=True)
class Explanation:
    """One run of both programs, statement by statement. ``first`` is the index of the first step that parts.

    ``left_out`` counts steps that are not listed because there were too many. ``cut`` says that the run went on, and
    its later values were too many or too large to be compared.
    """

    steps: tuple[Step, ...]
    first: int | None
    precision: str
    mode: str
    left_out: int = 0
    cut: bool = False

    def to_json(self) -> dict[str, Any]:
        about = {"precision": self.precision, "mode": self.mode, "left_out": self.left_out, "cut": self.cut}
        return {**about, "first": self.first, "steps": [s.to_json() for s in self.steps]}


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
            "divergence": asdict(self.divergence) if self.divergence else None,
            **asked,
        }


@dataclass(frozen=True)
class NotRun:
    """A function, method or script of the PyTorch file that trains: no check runs it as a whole."""

    name: str
    line: int


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

    @property
    def lines(self) -> str:
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
        lists = {name: [asdict(one) for one in getattr(self, name)] for name in ("not_run", "branches", "training")}
        about = {"text": self.text, "complete": self.complete, "classes": self.classes, "functions": self.functions}
        return {**about, **lists, "gaps": list(self.gaps)}

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


_UNCOVERED = (("class", "class", "classes"), ("function", "function", "functions"), ("method", "method", "methods"))


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _of_all(counts: dict[str, int], one: str, more: str) -> str:
    """``1 of 2 classes equivalent``."""
    total = sum(counts.values())
    return f"{counts.get(VerdictKind.EQUIVALENT, 0)} of {_count(total, one, more)} equivalent"


def file_verdict(kinds: Iterable[str], coverage: Coverage | None) -> VerdictKind:
    """The verdict on a file from those on its objects, and from what these cover where that was asked."""
    found = set(kinds)
    if VerdictKind.DIFFERENT in found:
        return VerdictKind.DIFFERENT
    if VerdictKind.UNCHECKED in found or not found or (coverage is not None and not coverage.complete):
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
            **({"not_run": [asdict(one) for one in self.not_run]} if self.not_run else {}),
            **({"coverage": self.coverage.to_json()} if self.coverage is not None else {}),
            **({"containment": self.containment.to_json()} if self.containment else {}),
        }
