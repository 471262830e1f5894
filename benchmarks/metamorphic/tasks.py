"""The work of one process: a program, and the changes to try on it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from t2j_lsp.check.process.pool import Pool

from .corpora import Program
from .program_trial import ProgramTrial
from .trial import Outcome, Trial


@dataclass(frozen=True)
class Task:
    """One program with the changes to try on it. ``checked``: what is converted otherwise is handed to the checker."""

    program: Program
    changes: tuple[tuple[str, ...], ...]
    seed: int
    checked: bool = False


_pools: list[Pool] = []


def set_cache(folder: str) -> None:
    """Where the workers of a process keep what they can make anew, if nothing says so."""
    os.environ.setdefault("T2J_CACHE", folder)


def run(task: Task) -> list[Outcome]:
    """One task, in workers of this process, which end when its pipes close."""
    if task.checked and not _pools:
        _pools.append(Pool(device="cpu", project=Path(os.environ["T2J_CACHE"])))
        _pools[0].start()
    kind = ProgramTrial if task.program.runs else Trial
    trial = kind(task.program, _pools[0] if task.checked else None)
    return [trial.of(names, str(task.seed)) for names in task.changes]
