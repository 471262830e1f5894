"""Many files converted at a time: on all cores, each within a budget of time."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from t2j_lsp.api import FileConversion, convert_file
from t2j_lsp.contract import Options, T2JError

SECONDS = 60
"""Processor time after which a file is given up, where the system counts it for single processes."""
WORTH = 150_000
"""Bytes from which on a second process pays, which has the rules to read first."""
AT_ONCE = 4
"""Files that a process takes at a time: those of one folder import the same others."""

Job = tuple[Path, Options]


class _Runaway(Exception):
    """A conversion took more than its budget."""


def convert_all(jobs: Sequence[Job], processes: int | None = None) -> Iterator[FileConversion | T2JError]:
    """Convert files; what each became, or why it could not be converted, in the order of ``jobs``.

    ``processes`` says how many to use; by default as many as there are cores, if there is enough to do.
    """
    count = min(processes or _cores(), len(jobs))
    if count < 2 or processes is None and sum(map(_size, jobs)) < WORTH:
        yield from map(converted_or_error, jobs)
        return
    # Not forked: a terminal's progress has a thread, and threads and forks don't mix.
    kind = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    executor = ProcessPoolExecutor(count, multiprocessing.get_context(kind))
    done = 0
    try:
        for one in executor.map(converted_or_error, jobs, chunksize=min(AT_ONCE, -(-len(jobs) // count))):
            done += 1
            yield one
    except BrokenProcessPool:
        for path, _ in jobs[done:]:
            yield T2JError(f"{path}: a process that converted files was ended by the system")
    finally:
        executor.shutdown(cancel_futures=True)


def converted_or_error(job: Job) -> FileConversion | T2JError:
    """One file, or why it could not be converted: a bad one never stops the rest."""
    path, options = job
    try:
        with _budget():
            return convert_file(path, options)
    except T2JError as error:
        return error
    except _Runaway:
        return T2JError(f"{path}: not converted within {SECONDS} s of processor time")
    except Exception as error:  # noqa: BLE001 - a defect of t2j: the file is reported, the others are converted
        return T2JError(f"{path}: an error inside t2j, {type(error).__name__}: {error}")


@contextmanager
def _budget() -> Iterator[None]:
    """Ends what runs in the block by `_Runaway` when the time is over, where that can be done."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(number: int, frame: FrameType | None) -> None:
        raise _Runaway

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _size(job: Job) -> int:
    try:
        return job[0].stat().st_size
    except OSError:
        return 0
