"""The two worker processes: started on first use, kept warm, replaced when anything about them goes wrong."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from t2j_lsp.check.messages import Greeting
from t2j_lsp.contract import Containment

from .compile_cache import open_cache, trim
from .containment import containment_of, offered
from .watch import resident, tree
from .worker import ON_GPU, CheckCancelled, Crashed, Kind, Limits, RemoteError, Worker, WorkerError

_INSTEAD = {"bubblewrap": "namespace", "namespace": ""}
"""What holds a worker for which a view of the file system could not be made."""


class Pool:
    """A torch worker and a JAX worker, for use from any thread. Use as a context manager, or call `close`.

    A pool is for checks of one project: what a program changes in a worker, or plants in the folder of compiled
    programs, reaches no other. Without a project, compiled programs are not kept. Programs read what ``readable``
    names, and nothing else of the user's. ``layers`` are those of `containment` that are to hold, by default all that
    the system offers.
    """

    def __init__(
        self,
        torch_python: str | None = None,
        jax_python: str | None = None,
        device: str = "auto",
        limits: Limits | None = None,
        project: Path | None = None,
        readable: Sequence[Path | str] = (),
        layers: Sequence[str] | None = None,
        quick: bool = True,
    ) -> None:
        self.quick = quick
        """Whether XLA compiles fast, for programs that run a few times; else as it does for users."""
        self.project = project
        self.readable = tuple(os.path.abspath(path) for path in readable)
        """Folders that checked programs may read, besides the interpreters' own."""
        self._asked_layers = None if layers is None else tuple(layers)
        self._failed: set[str] = set()
        """Views of the file system that were offered, and could not be made for these folders."""
        self._pythons: dict[Kind, str] = {"torch": torch_python or sys.executable, "jax": jax_python or sys.executable}
        self.device = device
        """What was asked for: ``auto``, ``cpu`` or ``gpu``."""
        self.fallback: str | None = None
        """Why a check that was to run on a GPU runs on the CPU."""
        self._where: Literal["cpu", "gpu"] = "gpu" if device == "gpu" else "cpu"
        self._settled = self._where == "cpu"
        """Whether it is known that both workers run where they are to."""
        self._settling = threading.Lock()
        self.limits = limits or (ON_GPU if device == "gpu" else Limits())
        self._workers: dict[Kind, Worker] = {}
        self._locks: dict[Kind, threading.Lock] = {"torch": threading.Lock(), "jax": threading.Lock()}
        self.greetings: dict[Kind, Greeting] = {}
        self.refused: dict[Kind, list[str]] = {"torch": [], "jax": []}
        """What was refused to the program in the last request to each worker."""

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Starts both workers at once, without waiting for them to be ready. What fails here fails again on use."""
        for kind, lock in self._locks.items():
            with lock, contextlib.suppress(WorkerError):
                self._spawn(kind)

    def request(
        self, kind: Kind, operation: str, timeout: float, cancelled: Callable[[], bool] = lambda: False, **message: Any
    ) -> Any:
        """Asks a worker. Raises WorkerError (the worker is replaced on the next request) or RemoteError.

        Where a program crashes that XLA compiled in haste, it is asked once more of workers that compile as for users.
        """
        try:
            return self._request(kind, operation, timeout, cancelled, **message)
        except Crashed:
            if kind != "jax" or not self.quick or self._where == "gpu":
                raise
        self.quick = False
        return self._request(kind, operation, timeout, cancelled, **message)

    def _request(
        self, kind: Kind, operation: str, timeout: float, cancelled: Callable[[], bool], **message: Any
    ) -> Any:
        self._settle(cancelled)
        with self._locks[kind]:
            worker = self._ready(kind, cancelled)
            try:
                return worker.request({"operation": operation, **message}, timeout, cancelled)
            except WorkerError:
                worker.dirty = True
                raise
            finally:
                self.refused[kind] = worker.refused
                now = tree(worker.process.pid)
                if worker.dirty or {*now} - worker.known or resident(now) > self.limits.growth:
                    self._drop(kind)

    def _settle(self, cancelled: Callable[[], bool]) -> None:
        """Finds out whether both frameworks have the card that is asked for; else both run on the CPU."""
        with self._settling:
            if self._settled:
                return
            missing: list[str] = []
            for kind, lock in self._locks.items():
                with lock:
                    try:
                        self._ready(kind, cancelled)
                        missing += filter(None, [self.greetings[kind].missing])
                    except CheckCancelled:
                        raise
                    except (WorkerError, RemoteError) as error:
                        missing.append(str(error))
            if missing:
                self.fallback, self._where = "; ".join(missing), "cpu"
                for kind, lock in self._locks.items():
                    with lock:
                        self._drop(kind)
            self._settled = True

    def _ready(self, kind: Kind, cancelled: Callable[[], bool]) -> Worker:
        """A worker that answers. Where no view of the file system can be made for it, the next way to hold it is taken.

        Raises WorkerError; the worker is then gone.
        """
        while True:
            worker = self._spawn(kind)
            if worker.count > 0:
                return worker
            try:
                self.greetings[kind] = self._greet(worker, cancelled)
            except (WorkerError, RemoteError):
                failed = next((layer for layer in _INSTEAD if layer in worker.layers), None)
                again = failed is not None and worker.was_not_contained and self._asked_layers is None
                self._drop(kind)
                if failed is None or not again:
                    raise
                self._failed.add(failed)
                continue
            worker.known = {*tree(worker.process.pid)}
            return worker

    def _layers(self, python: str) -> tuple[str, ...]:
        """The layers that are to hold a worker."""
        if self._asked_layers is not None:
            return self._asked_layers
        held = offered(python)
        for failed in sorted(self._failed):
            held = tuple(_INSTEAD[layer] if layer == failed else layer for layer in held)
        return tuple(filter(None, held))

    def _spawn(self, kind: Kind) -> Worker:
        worker = self._workers.get(kind)
        if worker is not None and worker.process.poll() is not None:
            self._drop(kind)
            worker = None
        if worker is None:
            try:
                cache = open_cache(self.project) if kind == "jax" and self.project is not None else None
                python = self._pythons[kind]
                folders = cache, self.readable, self._layers(python)
                worker = Worker(kind, python, self._where, self.limits, *folders, self.quick)
            except OSError as error:
                raise WorkerError(f"the {kind} interpreter {self._pythons[kind]} does not start: {error}") from error
            self._workers[kind] = worker
        return worker

    def _greet(self, worker: Worker, cancelled: Callable[[], bool]) -> Greeting:
        try:
            answer = worker.request({"operation": "greet"}, self.limits.start, cancelled)
        except CheckCancelled:
            raise
        except WorkerError as error:
            raise WorkerError(
                ": ".join([f"{self._pythons[worker.kind]} can't run {worker.kind}: {error}", *worker.log[-1:]])
            ) from error
        return Greeting.from_plain(answer)

    def processes(self, kind: Kind) -> list[int]:
        """The process ids of a worker and of everything that it started; none where it doesn't run."""
        worker = self._workers.get(kind)
        return [] if worker is None else tree(worker.process.pid)

    def _drop(self, kind: Kind) -> None:
        worker = self._workers.pop(kind, None)
        if worker is not None:
            worker.close()

    @property
    def device_name(self) -> str:
        """What both sides ran on: ``cpu``, or ``gpu`` with its name."""
        names = {greeting.device for greeting in self.greetings.values()} - {"cpu"}
        return f"gpu: {' and '.join(sorted(names))}" if names and self._where == "gpu" else "cpu"

    @property
    def containment(self) -> Containment | None:
        """How the workers are shut in, by the weaker of the two; None before one answered."""
        layers = [containment_of(greeting.layers) for greeting in self.greetings.values()]
        return max(layers, key=lambda one: len(one.not_held), default=None)

    def close(self) -> None:
        """Ends both workers."""
        for kind, lock in self._locks.items():
            with lock:
                self._drop(kind)
        if self.project is not None:
            trim()
