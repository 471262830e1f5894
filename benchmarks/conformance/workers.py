"""Worker processes that run operators: one that dies or hangs costs its operator, not the run."""

from __future__ import annotations

import multiprocessing as mp
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any

from . import modules, optimizers
from .running import Problem, Result, prepare, run

Task = tuple[str, str, "int | None", "Result | None"]
"""A name, its dtype (of operators) or set, how many samples, and the former result."""
SETS = {modules.SET: modules.run, optimizers.SET: optimizers.run}


def serve(pipe: Connection) -> None:
    """Answers tasks until the pipe closes."""
    prepare()
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            name, kind, limit, known = task
            pipe.send(SETS[kind](name, limit, known) if kind in SETS else run(*task))
        except Exception as error:  # noqa: BLE001 - a mistake of the benchmark itself costs its operator
            pipe.send(lost(task, f"{type(error).__name__}: {error}"))


def lost(task: Task, why: str) -> Result:
    """The result of an operator that has none."""
    problem = Problem("crash", "function", "", "", why)
    return Result(task[0], task[1], counts={"function": {"crash": 1}}, problems=[problem])


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    task: Task | None = None
    since: float = 0.0


class Workers:
    """A number of worker processes, ended with the block."""

    def __init__(self, number: int, timeout: float) -> None:
        self._context = mp.get_context("spawn")
        self._number, self._timeout = number, timeout
        self._workers: list[_Worker] = []

    def __enter__(self) -> Workers:
        self._workers = [self._start() for _ in range(self._number)]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for worker in self._workers:
            self._end(worker)

    def run(self, tasks: list[Task]) -> Iterator[Result]:
        """Results in the order in which they are ready."""
        waiting = tasks[::-1]
        while waiting or any(w.task for w in self._workers):
            for worker in self._workers:
                if worker.task is None and waiting:
                    worker.task, worker.since = waiting.pop(), time.monotonic()
                    worker.pipe.send(worker.task)
            ready = wait([w.pipe for w in self._workers if w.task], timeout=1.0)
            for index, worker in enumerate(self._workers):
                if worker.task is None:
                    continue
                if worker.pipe in ready:
                    try:
                        result = worker.pipe.recv()
                        worker.task = None
                    except EOFError:
                        result = lost(worker.task, "the process died")
                elif time.monotonic() - worker.since > self._timeout:
                    result = lost(worker.task, f"not done after {self._timeout:.0f} seconds")
                else:
                    continue
                if worker.task is not None:
                    self._end(worker)
                    self._workers[index] = self._start()
                yield result

    def _start(self) -> _Worker:
        near_end, far_end = self._context.Pipe()
        process = self._context.Process(target=serve, args=(far_end,), daemon=True)
        process.start()
        far_end.close()
        return _Worker(process, near_end)

    def _end(self, worker: _Worker) -> None:
        worker.pipe.close()
        worker.process.kill()
        worker.process.join()
