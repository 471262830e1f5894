"""How long objects of a PyTorch file and of its conversion run, in the workers of a check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.worker import RemoteError, WorkerError
from t2j_lsp.check.program.counterparts import counterpart
from t2j_lsp.check.program.objects import find_objects
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.program.workspace import read_text

from .file_check import FileCheck
from .session import CheckSettings


def run_time(source: Path, converted: str, objects: Sequence[str], pool: Pool) -> dict[str, float] | None:
    """Seconds of one call of each of these objects, summed: ``torch``, ``jax`` and, apart, ``compile``.

    Calls are those of a check: small inputs, evaluation mode, the user's precision, one thread. None where one of
    them can't be run so.
    """
    torch_side, jax_side = Slicer(source), Slicer(source, converted, read_text)
    check = FileCheck(pool, torch_side, jax_side, CheckSettings(), lambda: False)
    total = {"torch": 0.0, "jax": 0.0, "compile": 0.0}
    for item in find_objects(torch_side, objects):
        other = counterpart(jax_side, item)
        if other is None:
            return None
        try:
            timings = check.run_time(item, other)
        except (RemoteError, WorkerError):  # it may need what only a check replays
            return None
        if timings is None:
            return None
        total = {name: seconds + timings[name] for name, seconds in total.items()}
    return total if objects else None
