"""A conversion: its options, its text, what was found and changed on the way, and what is said of rules and helpers."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

JSON_VERSION = 2
"""Version number in the ``--json`` output. 2: the verdict of ``check`` on a whole file has its ``coverage``."""

MARK = "# TODO(t2j)"
"""How a comment starts that says above a statement of an output what of it stays."""

HELPER_MARKS = ("written by t2j", "from t2j_lsp.rules.helpers.", "from torch_helpers import")
"""What a converted file has that names helpers: above those that were copied into it, or where it imports them. A
module of its own says it itself."""

HELPERS_DOCSTRING = '"""PyTorch behaviour that Flax has no layer for; written by t2j, yours to edit."""'
"""The first line of a module of helpers."""

HELPER_LINES = 80
"""Lines of code of helpers that a file of its own keeps in it; more go into a module beside it (``auto``)."""

Target = Literal["nnx", "jax"]
HelperPlacement = Literal["auto", "inline", "module", "import"]
CUT_HELPERS: tuple[HelperPlacement, ...] = ("auto", "inline")
"""Where helpers are one file's alone, and cut to what it uses of them."""
InitialValues = Literal["torch", "flax"]
AxisOrder = Literal["nchw", "nhwc"]


def own_helpers(path: Path) -> Path | None:
    """The module of one file's helpers, ``train_helpers.py`` of ``train.py``; None where that name is no module's."""
    name = f"{path.stem}_helpers"
    return path.with_name(f"{name}.py") if path.suffix == ".py" and name.isidentifier() else None


class T2JError(Exception):
    """A failure the user can act on. Its text says what happened, where, and what to do."""


class SourceError(T2JError):
    """The source text can't be read or parsed: exit code 2, nothing written."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class InternalError(SourceError):
    """The translator wrote something that isn't Python: a defect of a rule. Nothing is converted."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


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
class LibrarySources:
    """Modules of installed libraries that are converted along, into a package of the project's own."""

    modules: tuple[tuple[str, str], ...]
    """What a module is called in the library, and in the conversion."""
    folder: str
    """Where the package is, still PyTorch, with what is used of the libraries."""
    makers: tuple[tuple[str, str, str], ...] = ()
    """Functions that make what is registered under a name, with each name and what is called for it."""

    @property
    def by_name(self) -> dict[str, dict[str, str]]:
        """What is called for each name, by the functions that make what is registered."""
        by_maker: dict[str, dict[str, str]] = {}
        for maker, name, made in self.makers:
            by_maker.setdefault(maker, {})[name] = made
        return by_maker


@dataclass(frozen=True)
class Options:
    """Settings of a translation.

    ``resolve`` maps an imported module, as ``(level, dotted name)`` with ``level`` counting leading
    dots, to its source text, or None where it can't be found: with it a class that is imported from
    a neighbouring file is known to be a module. ``x64`` keeps 64-bit dtypes. ``init`` says whose default initial values
    layers get. With ``scan``, layers that are alike and run one behind the other are made by ``nnx.vmap`` and run by
    ``nnx.scan``.
    """

    target: Target = "nnx"
    x64: bool = False
    helpers: HelperPlacement = "inline"
    """Where helpers go: ``inline`` cut to what the text uses; ``auto`` too, or if they are long into a module of the
    text's own, ``helper_module``; whole ones into the ``module`` that many files share, or imported from t2j."""
    init: InitialValues = "torch"
    scan: bool = False
    helper_module: str = "torch_helpers"
    helper_lines: int = HELPER_LINES
    """How many lines of code of helpers stay in the text where ``helpers`` is ``"auto"``."""
    path: str | None = None
    resolve: Callable[[int, str], str | None] | None = None
    layout: AxisOrder = "nchw"
    """What the outermost modules of a file take and give: PyTorch's axes, or channels-last values (``nhwc``)."""
    in_parts: bool = False
    """Whether classes are converted one by one: each keeps PyTorch's axes at its border."""
    taken_apart: bool = False
    """Whether modules are taken apart elsewhere, or get other parts: all layers keep PyTorch's axes."""
    alone: bool = False
    """Whether the file is converted without those that it imports: a note says which are PyTorch still."""
    used_elsewhere: Callable[[Collection[str]], Collection[str]] | None = None
    """Which of some names other files use: what these give keeps PyTorch's axes too. ``.name`` is an attribute."""
    libraries: LibrarySources | None = None
    """What is converted along of installed libraries: it is imported from there."""


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
    """Text of the module beside the output that its helpers are imported from: ``Options.helpers`` is ``"module"``, or
    ``"auto"`` and they are long."""

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
