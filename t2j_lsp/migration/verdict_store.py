"""The verdicts of checks, kept in the user's state folder, so that they are known after a restart.

One small file for each pair of a PyTorch file and its conversion. A verdict is about two texts, and it holds as long as
both files have these very texts, and the files that the two import from their project are the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from t2j_lsp.contract import Coverage, VerdictKind
from t2j_lsp.files.outline import text_digest
from t2j_lsp.files.written import digest, replace_file, state_folder

MAX_PAIRS = 2000
"""Pairs that are remembered; the oldest go first."""
MAX_REASON = 400
UNCHECKED = str(VerdictKind.UNCHECKED)


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """The verdict on one object. ``checked`` is a time in UTC; errors are the worst over all stages."""

    name: str
    verdict: str
    reason: str | None = None
    stages: dict[str, str] = field(default_factory=dict)
    """The result of each stage."""
    max_abs_err: float | None = None
    max_rel_err: float | None = None
    device: str = ""
    version: str = ""
    checked: str = ""


@dataclass(frozen=True)
class ReportedVerdict:
    """A verdict as it was reported, in the JSON form of `ObjectVerdict` without the values of both sides."""

    form: dict[str, Any]
    asked: dict[str, str] | None
    device: str
    version: str
    checked: str
    ran: list[str] = field(default_factory=list)
    """What ran for it, as `ObjectVerdict.ran`."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What is known of a pair."""

    source: str
    """The digest of the PyTorch text."""
    converted: str
    reports: dict[str, ReportedVerdict]
    verdicts: dict[str, StoredVerdict]
    """The reports in short."""
    names: list[str] | None
    """All objects of the PyTorch file; None where only some were ever checked."""
    neighbours: dict[str, str]
    """The files of the project that the check read besides, and the digests of their bytes."""
    coverage: Coverage | None = None
    """What the verdicts together cover of the file."""

    def holds(self, source: str, converted: str) -> bool:
        """Whether the verdicts are about texts with these digests."""
        return (self.source, self.converted) == (source, converted)

    def lacking(self, asked: Mapping[str, str], version: str) -> list[str] | None:
        """The objects on which a check would tell something that is not known; None for whatever there is.

        Known is what this ``version`` of t2j found when it was asked the same. That an object could not be checked may
        be another story the next time.
        """
        if self.names is None:
            return None
        return [name for name in self.names if not self._repeats(name, asked, version)]

    def beside(
        self, verdicts: Mapping[str, VerdictKind], ran: Iterable[str]
    ) -> tuple[dict[str, VerdictKind], set[str]]:
        """New verdicts and what ran for them, with what is kept of other objects, and of what could not be repeated."""
        merged, keys = dict(verdicts), set(ran)
        for name, report in self.reports.items():
            if merged.get(name, VerdictKind.UNCHECKED) is VerdictKind.UNCHECKED:
                merged[name] = VerdictKind(report.form["verdict"])
                keys |= set(report.ran)
        return merged, keys

    def _repeats(self, name: str, asked: Mapping[str, str], version: str) -> bool:
        one = self.reports.get(name)
        if one is None or one.form["verdict"] == UNCHECKED:
            return False
        return (one.asked, one.version) == (dict(asked), version)


def asked_of(
    stage: str, device: str, torch_python: str | None, jax_python: str | None, init: str = "torch"
) -> dict[str, str]:
    """What a check was asked for, as `record` keeps it."""
    pythons = {"torch_python": torch_python or "", "jax_python": jax_python or ""}
    return {"stage": stage, "device": device, **pythons, "init": init}


def record(
    source: Path,
    source_text: str,
    converted: Path,
    converted_text: str,
    objects: Iterable[dict[str, Any]],
    *,
    device: str,
    version: str,
    asked: Mapping[str, str] | None = None,
    names: Sequence[str] | None = None,
    neighbours: Mapping[str, str] | None = None,
    ran: Mapping[str, Sequence[str]] | None = None,
    coverage: Coverage | None = None,
) -> None:
    """Keep the verdicts of a check by this ``version`` of t2j, in the JSON form of `ObjectVerdict`.

    ``asked`` is what it was asked for: its stage, device and interpreters. ``names`` are all objects of the PyTorch
    file, and ``neighbours`` what `digests_of` says of the other files that the check read. Verdicts on other objects
    stay, where they are about the same texts. ``ran`` is what ran for each object, and ``coverage`` what all verdicts
    together cover, those that are kept among them. Where the state folder can't be written, nothing is kept.
    """
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    digests = text_digest(source_text), text_digest(converted_text)
    beside = dict(neighbours or {})
    known = load(source, converted)
    if known is None or not known.holds(*digests) or known.neighbours != beside:
        known = None
    reports = dict(known.reports) if known is not None else {}
    if names is None and known is not None:
        names = known.names
    for form in objects:
        before = reports.get(form["name"])
        # That a check could not be made (again) takes nothing from one that was.
        if before is None or before.form["verdict"] == UNCHECKED or form["verdict"] != UNCHECKED:
            requested = dict(asked) if asked is not None else None
            keys = list((ran or {}).get(form["name"], ()))
            reports[form["name"]] = ReportedVerdict(_bare(form), requested, device, version, now, keys)
    data = {
        "source": digests[0],
        "converted": digests[1],
        "neighbours": beside,
        "names": list(names) if names is not None else None,
        "reports": [asdict(r) for r in reports.values()],
        "coverage": coverage.to_json() if coverage is not None else None,
    }
    path = store_path(source, converted)
    with contextlib.suppress(OSError):
        replace_file(path, json.dumps(data).encode(), MAX_PAIRS)


def load(source: Path, converted: Path) -> Stored | None:
    """What is known of a pair; None where nothing is."""
    try:
        data = json.loads(store_path(source, converted).read_bytes())
        reports = {form["form"]["name"]: ReportedVerdict(**form) for form in data["reports"]}
        verdicts = {name: _in_short(report) for name, report in reports.items()}
        names = [str(name) for name in data["names"]] if data["names"] is not None else None
        beside, covered = dict(data["neighbours"]), data.get("coverage")
        coverage = Coverage.from_json(covered) if covered is not None else None
        return Stored(data["source"], data["converted"], reports, verdicts, names, beside, coverage)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def kept(source: Path, source_text: str, converted: Path, converted_text: str) -> Stored | None:
    """The verdicts on a pair that hold for these texts, and for what they import as it is on disk; None without any."""
    known = load(source, converted)
    if known is None or not known.holds(text_digest(source_text), text_digest(converted_text)):
        return None
    holds = known.reports and digests_of(map(Path, known.neighbours)) == known.neighbours
    return known if holds else None


def digests_of(files: Iterable[Path]) -> dict[str, str]:
    """The digest of each file's bytes, by path; an empty one where it can't be read."""
    digests: dict[str, str] = {}
    for path in files:
        try:
            digests[str(path)] = digest(path.read_bytes())
        except OSError:
            digests[str(path)] = ""
    return digests


def _bare(form: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in form.items() if name != "explanation"}


def store_path(source: Path, converted: Path) -> Path:
    """The file that holds what is known of a pair."""
    pair = b"\0".join(os.fsencode(os.path.realpath(path)) for path in (source, converted))
    return state_folder() / "verdicts" / digest(pair)


def _in_short(report: ReportedVerdict) -> StoredVerdict:
    form, stages = report.form, report.form["stages"]
    divergence = form.get("divergence") or {}
    reason = divergence.get("what") or form["reason"]
    absolute = [s["max_abs_err"] for s in stages.values() if s["max_abs_err"] is not None]
    relative = [s["max_rel_err"] for s in stages.values() if s["max_rel_err"] is not None]
    return StoredVerdict(
        form["name"],
        str(form["verdict"]),
        reason[:MAX_REASON] if reason else None,
        {name: str(stage["result"]) for name, stage in stages.items()},
        max(absolute, default=None),
        max(relative, default=None),
        report.device,
        report.version,
        report.checked,
    )
