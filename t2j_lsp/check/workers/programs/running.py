"""Runs a program as ``__main__`` in a copy of its folder."""

from __future__ import annotations

import functools
import itertools
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from t2j_lsp.check.arguments import command_line
from t2j_lsp.check.messages import ProgramRun
from t2j_lsp.check.requests import ProgramRequest
from t2j_lsp.check.workers.loading import Transform, main_program
from t2j_lsp.check.workers.serve import failure

from .budget import StepBudget, StopProgram
from .recorder import OutputRecorder, Shown, recording
from .same_time import same_time

_COPIED, _LISTED = 32 * 1024**2, 2000
"""Bytes of a file that is copied, and files in all; larger ones and further ones are linked to, and only read."""


def copy_folder(source: str, target: str) -> None:
    """Makes the files of a folder stand in another, where a program may change them."""
    left = _LISTED
    for folder, names, files in os.walk(source):
        names[:] = [n for n in names if not n.startswith(".") and n not in ("__pycache__", "node_modules")]
        inside = os.path.join(target, os.path.relpath(folder, source))
        os.makedirs(inside, exist_ok=True)
        for name in files:
            path, place = os.path.join(folder, name), os.path.join(inside, name)
            left -= 1
            if left > 0 and os.path.isfile(path) and os.path.getsize(path) <= _COPIED:
                shutil.copyfile(path, place)
            elif not os.path.exists(place):
                os.symlink(path, place)
        if left <= 0:
            names.clear()


def run(
    request: ProgramRequest,
    transform: Transform,
    shown: Shown,
    budget: StepBudget,
    around: Callable[[OutputRecorder], Any],
) -> tuple[ProgramRun, ModuleType]:
    """The program of a request, run to its end: what it printed, and its namespace for who looks further.

    ``around`` gives the context in which it runs.
    """
    part = request.slice
    recorder = OutputRecorder(set(part.files), shown)
    result = ProgramRun()
    with main_program(part, transform) as (module, code):
        file = Path(module.__file__ or "")
        module.__dict__["__file__"] = os.path.join(os.getcwd(), file.name)
        sys.path.insert(0, os.getcwd())
        if file.suffix == ".ipynb":
            module.__dict__["display"] = recorder.display
        arguments, sys.argv = sys.argv, [module.__dict__["__file__"], *request.arguments]
        try:
            with (
                around(recorder),
                recording(recorder),
                same_time(recorder.files),
                command_line.as_given(),
                _seeded(request.seed),
            ):
                start = time.perf_counter()
                try:
                    exec(code, module.__dict__)
                except SystemExit as end:
                    result.exit_code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
                except StopProgram:
                    result.stopped = True
                except Exception as error:  # noqa: BLE001 - what a program raises is something to compare
                    result.failure = failure(error)
                    lines = [line for path, line, _ in reversed(result.failure.frames) if path == str(file)]
                    result.line, result.calls = (lines[0], lines[1:]) if lines else (0, [])
                result.seconds = time.perf_counter() - start
        finally:
            sys.argv = arguments
    result.printed = recorder.printed
    result.steps = len(budget.times)
    spans = np.diff([start, *budget.times])
    result.step_seconds = float(np.median(spans[1:])) if len(spans) > 1 else None
    return result, module


@contextmanager
def _seeded(number: int) -> Iterator[None]:
    """Python's and numpy's generators start alike, and so do those that a program makes without a seed."""
    random.seed(number)
    np.random.seed(number)
    original, made = np.random.default_rng, itertools.count(number)

    @functools.wraps(original)
    def default_rng(seed: Any = None) -> np.random.Generator:
        return original(next(made) if seed is None else seed)

    with mock.patch.object(np.random, "default_rng", default_rng):
        yield
