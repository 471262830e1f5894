"""What decides in the model lane: a run of the PyTorch program and of a candidate side by side. Never a model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from t2j_lsp.contract import ObjectVerdict, VerdictKind

FAILS = re.compile(r"^it (?:fails in|runs, but not under jit|can't be built)[^:]*: (?=\w)")
LOADS = "the converted code does not load: "

_OURS = re.compile(r" at \S*t2j_lsp/check/workers/[\w/]+\.py:\d+")
"""Where a traced function of the check's own stands: no part of what the candidate did wrong."""

_FOLDERS = re.compile(r"(?<![\w.:/])/\S*/(?=[\w.-]+\.py\b)")
"""Folders of files that a message names: they are another's on another machine."""


class Judge(Protocol):
    """Compares one class or function of a PyTorch program with its conversion, by running both."""

    def __call__(self, source: str, candidate: str, name: str) -> ObjectVerdict: ...


@dataclass(frozen=True)
class TestRun:
    """Unit tests of one class or function that pass on the PyTorch program, and how they end on a candidate."""

    __test__ = False  # for pytest, which takes the name for that of a class of tests

    torch: str
    jax: str
    """The test file, before and after translation."""
    results: dict[str, str]
    """By test ``passed``, or what was wrong."""


class Tester(Protocol):
    """Runs unit tests of the PyTorch program on a candidate: data for dialogues. It decides nothing."""

    def __call__(self, source: str, candidate: str, name: str) -> TestRun | None: ...


@dataclass(frozen=True)
class CandidateFailure:
    """How a candidate failed: ``outcome`` is ``raises``, ``differs`` or ``does not load``; the message as it came."""

    outcome: str
    message: str
    lines: tuple[int | None, int | None]
    """The line of the PyTorch program and that of the candidate at which they part."""


def failure_of(verdict: ObjectVerdict) -> CandidateFailure | None:
    """What a verdict says went wrong; None where the candidate was not seen to differ."""
    if verdict.verdict is not VerdictKind.DIFFERENT:
        return None
    reason, place = _FOLDERS.sub("", _OURS.sub("", verdict.reason or "")), verdict.divergence
    lines = (
        place.torch.line if place and place.torch else None,
        place.jax.line if place and place.jax else None,
    )
    if reason.startswith(LOADS):
        return CandidateFailure("does not load", reason.removeprefix(LOADS), lines)
    if match := FAILS.match(reason):
        return CandidateFailure("raises", reason[match.end() :], lines)
    return CandidateFailure("differs", reason, lines)


def masked(message: str) -> str:
    """A message without what changes from run to run: numbers, addresses of objects, and how much more differs.

    Other inputs are left out where time is short, and so is what differs with them.
    """
    message = re.sub(r" \((?:\d+ more observations differ|one more observation differs)\)", "", message)
    message = re.sub(r"0x[0-9a-f]+", "0x", message)
    return re.sub(r"(?<![A-Za-z_])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", "N", message)
