"""What is known of a pair of files, where the two part, and how that is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsprotocol import types

from t2j_lsp.contract import DIFFERS, Coverage, T2JError, VerdictKind, editor_code, file_verdict
from t2j_lsp.files.sources import read_source
from t2j_lsp.lsp.documents import Document
from t2j_lsp.lsp.links import finding_page
from t2j_lsp.lsp.pairs import definition_head
from t2j_lsp.lsp.paths import to_path
from t2j_lsp.lsp.positions import split_lines
from t2j_lsp.lsp.session import Session
from t2j_lsp.migration.verdict_store import Stored

from .places import PairPlaces


@dataclass(frozen=True)
class FoundDifference:
    """A difference, at a line (from 0) of one document, with the other document's line.

    ``name`` is the class or function that differs; ``fix`` the edit of the conversion that was found to mend it, as it
    is in the report.
    """

    uri: str
    line: int | None
    message: str
    other_uri: str
    other_line: int | None
    source_uri: str
    name: str
    fix: dict[str, Any] | None = None
    is_hint: bool = False
    """Whether the error stands in the other document, and this line only refers to it."""


@dataclass
class Checked:
    """What is known of one pair of files."""

    verdicts: list[dict[str, Any]] = field(default_factory=list)
    device: str = ""
    stale: bool = False
    problem: str | None = None
    """Why the last check gave no verdicts."""
    differences: list[FoundDifference] = field(default_factory=list)
    shapes: dict[tuple[str, int], list[Any]] = field(default_factory=dict)
    """The shapes of values by document and line (from 0)."""
    revision: int = -1
    """The source's revision that ``shapes`` are about."""
    device_reason: str | None = None
    """Why it was the CPU, where a GPU was asked for."""
    coverage: Coverage | None = None
    """What the verdicts cover of the file."""
    containment: dict[str, Any] | None = None
    """How the code was shut in, as in the report; None where none ran in this session."""

    def make_stale(self) -> bool:
        """A text was edited. Answers whether that is news."""
        if self.stale:
            return False
        self.stale, self.differences, self.shapes = True, [], {}
        return True


def restored(kept: Stored, places: PairPlaces) -> Checked:
    """What was known of a pair when it was checked last. Each verdict has the ``device`` that it is from."""
    reports = sorted(kept.reports.values(), key=lambda report: report.checked)
    verdicts = [{**report.form, "device": report.device} for report in kept.reports.values()]
    differences = [f for verdict in verdicts for f in differences_of(verdict, places)]
    return Checked(verdicts, reports[-1].device, differences=differences, coverage=kept.coverage)


def merged_with(
    before: Checked | None, verdicts: list[dict[str, Any]], objects: list[str] | None
) -> list[dict[str, Any]]:
    """New verdicts, those on ``objects`` or on the whole file, among what else was known of it and still holds."""
    if objects is None or before is None or before.stale:
        return list(verdicts)
    new = {v["name"]: v for v in verdicts}
    kept = [new.pop(v["name"], v) for v in before.verdicts]
    return [*kept, *new.values()]


def overall(state: Checked, name: str | None = None) -> str:
    """The verdict on a whole file, by the rule of `CheckReport`, or on one object of it."""
    if name is not None:
        return str(file_verdict((v["verdict"] for v in state.verdicts if v["name"] == name), None))
    return str(file_verdict((v["verdict"] for v in state.verdicts), state.coverage))


def message(state: Checked, file: str, name: str | None = None) -> str:
    """The verdict on a file, or on one object of it, in a line: what a message or a status shows.

    ``net.py: unchecked: 2 of 2 classes equivalent; 4 functions not run; 8 places left as PyTorch``
    """
    if state.problem is not None:
        return f"{file}: {state.problem}"
    kind = overall(state)
    about = [v for v in state.verdicts if v["name"] == name or (name is None and v["verdict"] == kind)]
    if name is not None:
        parts = [name, *(part for v in about for part in (v["verdict"], _reason(v)))]
    else:
        reasons = [] if kind == VerdictKind.EQUIVALENT else [f"{v['name']}: {_reason(v)}" for v in about if _reason(v)]
        covered = state.coverage.text if state.coverage is not None else None
        parts = [file, kind, *([] if kind == VerdictKind.DIFFERENT else [covered]), *reasons[:1]]
    return ": ".join(filter(None, parts))


def summary_of(state: Checked, source: str, converted: str | None, name: str | None) -> dict[str, Any]:
    """What is known of a pair, for the client; verdict and message are on one of its objects where it is named."""
    return {
        "uri": source,
        "converted": converted,
        "verdict": overall(state, name),
        "message": message(state, Path(to_path(source) or source).name, name),
        "coverage": state.coverage.to_json() if state.coverage is not None else None,
        "stale": state.stale,
        "problem": state.problem,
        "device": state.device,
        "deviceReason": state.device_reason,
        "containment": state.containment,
        "objects": state.verdicts,
    }


def _reason(verdict: dict[str, Any]) -> str | None:
    """Why an object is not equivalent, in a line."""
    if verdict["verdict"] == VerdictKind.EQUIVALENT:
        return None
    reason = (verdict.get("divergence") or {}).get("what") or verdict["reason"]
    return str(reason).splitlines()[0] if reason else None


def differences_of(verdict: dict[str, Any], places: PairPlaces) -> list[FoundDifference]:
    """The places of one verdict's difference: the error in the conversion, where that is a file, and a hint in PyTorch.

    Where the client has nothing of the conversion to put it in, the error stands at the PyTorch line.
    """
    if verdict["verdict"] != VerdictKind.DIFFERENT:
        return []
    name, divergence = verdict["name"], verdict["divergence"] or {}
    what = str(divergence.get("what") or verdict["reason"])
    what += f"\nLikely cause: {divergence['cause']}" if divergence.get("cause") else ""
    torch, jax = places.torch(divergence.get("torch"), name), places.jax(divergence.get("jax"), name)
    if places.converted is None:
        alone = f"{name} differs from PyTorch once it is converted: {what}"
        return [FoundDifference(torch.uri, torch.line, alone, places.source, None, places.source, name)]
    about = places.source, name, divergence.get("fix")
    refers = f"{name} differs from PyTorch in {places.named(divergence.get('jax'))}: {what}"
    if jax is None:
        return [FoundDifference(torch.uri, torch.line, refers, places.converted, None, *about)]
    error = f"{name} differs from PyTorch, {torch.named}: {what}"
    return [
        FoundDifference(torch.uri, torch.line, refers, jax.uri, jax.line, *about, is_hint=True),
        FoundDifference(jax.uri, jax.line, error, torch.uri, torch.line, *about),
    ]


def diagnostics_of(
    session: Session, differences: list[FoundDifference], document: Document | None
) -> list[types.Diagnostic]:
    """The differences in one document as diagnostics; ``document`` None reads the file's lines from disk."""
    page = finding_page(session, DIFFERS) if session.client.code_description else None
    listed: list[types.Diagnostic] = []
    for one in differences:
        lines = document.lines if document is not None else _disk_lines(one.uri)
        line = line_in(one, lines)
        text = lines[line].rstrip("\r\n") if line < len(lines) else ""
        indent = len(text) - len(text.lstrip())
        where = types.Range(
            types.Position(line, indent),
            session.store.position(Document(one.uri, text, None), 0, len(text)),
        )
        where.end.line = line
        related = None
        if session.client.related_information and one.other_line is not None:
            other = types.Position(one.other_line, 0)
            side = "the JAX line" if one.is_hint else "the PyTorch line"
            related = [
                types.DiagnosticRelatedInformation(types.Location(one.other_uri, types.Range(other, other)), side)
            ]
        listed.append(
            types.Diagnostic(
                where,
                one.message,
                types.DiagnosticSeverity.Hint if one.is_hint else types.DiagnosticSeverity.Error,
                editor_code(DIFFERS),
                types.CodeDescription(page) if page else None,
                "t2j",
                related_information=related,
            )
        )
    return listed


def line_in(difference: FoundDifference, lines: list[str]) -> int:
    """The line (from 0) that a difference is shown on: its own, or that of the class or function's definition."""
    if difference.line is not None:
        return difference.line
    head = definition_head(difference.name)
    return next((number for number, line in enumerate(lines) if head.match(line)), 0)


def _disk_lines(uri: str) -> list[str]:
    path = to_path(uri)
    try:
        return split_lines(read_source(path).text) if path is not None else []
    except T2JError:
        return []
