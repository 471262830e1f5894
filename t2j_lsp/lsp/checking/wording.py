"""Verdicts in plain words: a line that stands above a definition, and all of it for whoever rests on that line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from t2j_lsp.contract import STAGES, Coverage, VerdictKind

MARKS = {VerdictKind.EQUIVALENT: "✓", VerdictKind.DIFFERENT: "≠", VerdictKind.UNCHECKED: "?"}
LONGEST = 72
"""Characters of a reason in a lens; the whole one is in its tooltip."""
NO_INPUTS = "no working inputs were found"
EDITED = "edited since"

_IN_CONVERSION = re.compile(r"(the conversion is not complete: )line (\d+)")
_MODES = {"eval": "in evaluation mode", "train": "in training mode"}
_SUBJECT = re.compile(r"(?:in float32, )?(?P<name>.+?) (?:differs|is|has|raises|gives|could)\b")
_WORDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?P<mode>eval|train) output\b.*"), "outputs {mode}"),
    (re.compile(r"gradient of parameter: (?P<of>.+)"), "gradient of {of}"),
    (re.compile(r"(?P<of>gradient of input.*)"), "{of}"),
    (re.compile(r"buffer after (?:eval|train): (?P<of>.+)"), "buffer {of}"),
    (re.compile(r"step (?P<of>\d+).*: (?P<what>.+)"), "{what} of training step {of}"),
    (re.compile(r"after (?P<of>\d+) steps.*: (?:parameter |buffer )?(?P<what>.+)"), "{what} after {of} training steps"),
    (re.compile(r"initial values: (?P<of>.+)"), "initial values of {of}"),
)


def clipped(text: str, longest: int = LONGEST) -> str:
    """A text on one line; where it is longer, cut between clauses, else between words."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    start = line[: longest + 1]
    clause = max(start.rfind(end) for end in ("; ", ": ", ", ", " ("))
    cut = clause if clause > longest // 2 else start.rfind(" ")
    return f"{start[: cut if cut > 0 else longest].rstrip(' ,;:.(')}…"


def counted(count: int, what: str) -> str:
    """``1 place``, ``2 places``: a number with its noun."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def left_as_pytorch(gaps: int) -> str:
    """How much of something was not converted."""
    return f"{counted(gaps, 'place')} left as PyTorch"


def device_word(device: str) -> str:
    """``CPU`` or ``GPU``; the tooltip has the GPU's name."""
    return device.partition(":")[0].upper()


def verdict_line(verdict: Mapping[str, Any], device: str, stale: bool = False, converted: str | None = None) -> str:
    """A verdict in a line: what was compared, the worst error and where it ran; or what differs, and at which line.

    ``converted`` is the name of the conversion's file, which a reason about a line of it then has.
    """
    kind = VerdictKind(verdict["verdict"])
    if converted is not None and verdict["reason"]:
        verdict = {**verdict, "reason": _IN_CONVERSION.sub(rf"\1{converted}:\2", verdict["reason"])}
    parts = {
        VerdictKind.EQUIVALENT: _agreed,
        VerdictKind.DIFFERENT: _differs,
        VerdictKind.UNCHECKED: _not_checked,
    }[kind](verdict)
    if device and kind is not VerdictKind.UNCHECKED:
        parts.append(device_word(device))
    return f"{MARKS[kind]} " + " · ".join([*parts, *([EDITED] if stale else [])])


def verdict_tooltip(verdict: Mapping[str, Any], device: str) -> str:
    """All that a verdict says, stage by stage."""
    divergence = verdict["divergence"] or {}
    lines = [f"{verdict['name']}: {verdict['verdict']}", verdict["reason"], divergence.get("cause")]
    for name in STAGES:
        stage = verdict["stages"][name]
        about = stage["reason"] if stage["result"] == "not run" else ", ".join(stage["observed"])
        lines.append(f"{name}: {stage['result']}{f' ({about})' if about else ''}")
    lines.append(f"device: {device}" if device else None)
    return "\n".join(dict.fromkeys(line for line in lines if line))


def coverage_line(kind: str, coverage: Coverage, stale: bool = False) -> str:
    """The verdict on a file with what it covers: ``? 2 of 2 classes equivalent; 4 functions not run``."""
    text = coverage.text or "nothing was checked"
    return f"{MARKS[VerdictKind(kind)]} {text}{f' · {EDITED}' if stale else ''}"


def coverage_details(coverage: Coverage) -> list[str]:
    """What did not run, with its lines, and where the conversion is still PyTorch."""
    missed = [f"not run: {one.name} ({one.lines})" for one in (*coverage.not_run, *coverage.branches)]
    missed += [f"not run as a whole: {one.name} ({one.lines})" for one in coverage.training]
    cells = coverage.gap_cells or (None,) * len(coverage.gaps)
    lines = [f"{n}" if cell is None else f"{n} of cell {cell}" for cell, n in zip(cells, coverage.gaps, strict=True)]
    return [*missed, *([f"left as PyTorch in the conversion: line {', '.join(lines)}"] if lines else [])]


def compared(stages: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What both programs were compared in, in a few words."""
    numeric = stages["numeric"]["observed"] if stages["numeric"]["result"] == "pass" else []
    behavioral = stages["behavioral"]["observed"] if stages["behavioral"]["result"] == "pass" else []
    parts = []
    if any(re.match(r"(eval|train) output", name) for name in numeric):
        parts.append("outputs")
    if any(name.startswith("gradient") for name in numeric):
        parts.append("gradients")
    steps = _steps(behavioral)
    if steps:
        parts.append(f"{steps} training steps")
    if any(name.startswith("generate output") for name in behavioral):
        parts.append("generated tokens")
    return parts or ["names and shapes"]


def _steps(observed: Iterable[str]) -> int:
    """How many optimizer steps were taken, with every optimizer together."""
    runs = {match[0]: int(match[1]) for name in observed if (match := re.match(r"after (\d+) steps[^:(]*", name))}
    return sum(runs.values())


def _agreed(verdict: Mapping[str, Any]) -> list[str]:
    errors = [s["max_rel_err"] for s in verdict["stages"].values() if s["max_rel_err"] is not None]
    parts = [f"checked: {', '.join(compared(verdict['stages']))}"]
    if errors:
        parts.append(f"worst error {max(errors):.0e}" if max(errors) else "no error at all")
    return parts


def _differs(verdict: Mapping[str, Any]) -> list[str]:
    divergence = verdict["divergence"] or {}
    parts = [f"differs: {clipped(subject(divergence.get('what') or verdict['reason'] or 'see the report'))}"]
    place = divergence.get("jax") or divergence.get("torch")
    return [*parts, _placed(place)] if place else parts


def _placed(place: Mapping[str, Any]) -> str:
    """``net.py:12``, or ``net.ipynb: cell 3, line 2``."""
    name, cell = Path(place["file"]).name, place.get("cell")
    return f"{name}: cell {cell}, line {place['line']}" if cell is not None else f"{name}:{place['line']}"


def subject(text: str) -> str:
    """What a sentence of the checker's is about: ``gradient of fc1.weight``; the sentence where that is not known."""
    match = _SUBJECT.match(text)
    if match is None:
        return text
    for pattern, words in _WORDS:
        if parsed := pattern.fullmatch(match["name"]):
            named = parsed.groupdict()
            return words.format(**{**named, "mode": _MODES.get(named.get("mode", ""), "")}).strip()
    return text


def _not_checked(verdict: Mapping[str, Any]) -> list[str]:
    reason = verdict["reason"] or "no reason is known"
    if reason.startswith(NO_INPUTS):
        return ["not checked: no inputs (tell them)"]
    return [f"not checked: {clipped(reason)}"]


_PARTS = {"printed": "printed text", "collected": "list", "saved": "saved file", "parameters": "parameter"}


def program_line(report: Mapping[str, Any], stale: bool = False, converted: str | None = None) -> str:
    """The verdict on two whole programs in a line: what came out of both, or what differs, and at which line.

    ``converted`` is the name of the conversion's file; without one, the place is the source's.
    """
    kind = VerdictKind(report["verdict"])
    if kind is VerdictKind.DIFFERENT:
        place = report["divergence"]["jax" if converted else "torch"]
        parts = [f"programs differ: {clipped(report['reason'])}"]
        parts += [_placed(place)] if place else []
    elif kind is VerdictKind.UNCHECKED:
        parts = [f"programs not compared: {clipped(report['reason'])}"]
    else:
        parts = [_ran(report)]
        errors = [one["max_rel_err"] for one in report["values"].values() if one["numbers"]]
        if errors:
            parts.append(f"worst error {max(errors):.0e}" if max(errors) else "no error at all")
    parts += ["synthetic data"] if report["synthetic"] else []
    if report["device"] and kind is not VerdictKind.UNCHECKED:
        parts.append(device_word(report["device"]))
    return f"{MARKS[kind]} " + " · ".join([*parts, *([EDITED] if stale else [])])


def _ran(report: Mapping[str, Any]) -> str:
    """What ran, and what came out of it."""
    if report["failed"] is not None:
        return clipped(f"both fail the same way: {report['failed']}")
    counts = [counted(one["count"], _PARTS[what]) for what, one in report["values"].items() if one["count"]]
    steps = f" for {counted(report['steps'], 'step')}" if report["stopped"] else ""
    return f"ran both{steps}: {', '.join(counts)}"


def program_tooltip(report: Mapping[str, Any]) -> str:
    """All that a report on two programs says in words."""
    lines = [report["reason"], *report["notes"], *(f"synthetic: {one}" for one in report["synthetic"])]
    for what, one in report["values"].items():
        if one["count"]:
            worst = f"{counted(one['numbers'], 'number')}, largest relative difference {one['max_rel_err']:.1e}"
            lines.append(f"{counted(one['count'], _PARTS[what])}: {worst}")
    for side, times in report["times"].items():
        lines.append(f"{side}: {times['seconds']:.2f} s")
    return "\n".join(dict.fromkeys(line for line in lines if line))
