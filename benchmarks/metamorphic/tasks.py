"""The work of one process: a program, and the changes to try on it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from t2j_lsp.check.process.pool import Pool

from .corpora import Program
from .trial import Outcome, Trial


@dataclass(frozen=True)
class Task:
    """One program with the changes to try on it; those in ``checked`` may ask the checker."""

    program: Program
    changes: tuple[tuple[str, ...], ...]
    checked: frozenset[tuple[str, ...]]
    seed: int


_pools: list[Pool] = []


def run(task: Task) -> list[Outcome]:
    """One task, in workers of this process, which end when its pipes close."""
    if task.checked and not _pools:
        _pools.append(Pool(device="cpu", project=Path(os.environ["T2J_CACHE"])))
        _pools[0].start()
    trial = Trial(task.program, None)
    done = []
    for names in task.changes:
        trial.pool = _pools[0] if names in task.checked else None
        done.append(trial.of(names, str(task.seed)))
    return done
