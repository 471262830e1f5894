"""Runs fixed bugs again: the faulty code has to fail as stated, the fixed code to be equivalent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from t2j_lsp.contract import VerdictKind
from t2j_lsp.fixes.record import Example

from .judging import CandidateFailure, Judge, failure_of, masked


@dataclass(frozen=True)
class Replayed:
    """What one run showed. ``problem`` says what is not as stated; it is empty where all holds."""

    id: str
    problem: str
    failure: CandidateFailure | None
    seconds: float


def replay(program: Example, judge: Judge, only: Sequence[str] = ()) -> Iterator[Replayed]:
    """Runs the fixed program, then every faulty one (or those whose ids are in ``only``).

    A bug without a stated message holds if it fails at all: so are the messages recorded.
    """
    start = time.monotonic()
    verdict = judge(program.input_code, program.fix_output, program.object)
    good = verdict.verdict is VerdictKind.EQUIVALENT
    problem = "" if good else f"the fixed code is {verdict.verdict}: {verdict.reason}"
    yield Replayed(program.example_id, problem, failure_of(verdict), time.monotonic() - start)
    if not good:
        return
    for case in program.pairs:
        if only and case.id not in only:
            continue
        start = time.monotonic()
        verdict = judge(program.input_code, case.faulty, program.object)
        failure = failure_of(verdict)
        if failure is None:
            problem = f"the faulty code is {verdict.verdict}: {verdict.reason or 'no difference was found'}"
        elif case.bug.error and masked(failure.message) != masked(case.bug.error):
            problem = f"it says {failure.message!r}, not {case.bug.error!r}"
        else:
            problem = ""
        yield Replayed(case.id, problem, failure, time.monotonic() - start)
