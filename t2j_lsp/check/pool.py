"""The two worker processes: started on first use, kept warm, replaced when anything about them goes wrong."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from t2j_lsp.contract import Containment

from .compile_cache import open_cache, trim
from .containment import containment_of, offered
from .environment import worker_environment
from .processes import kill_tagged, resident, tree
from .protocol import ProtocolError, frame, read_frame
from .scratch import Scratch

Kind = Literal["torch", "jax"]
_INSTEAD = {"bubblewrap": "namespace", "namespace": ""}
"""What holds a worker for which a view of the file system could not be made."""
_START = Path(__file__).parent / "workers" / "start.py"


class WorkerError(Exception):
    """The worker could not answer: it died, hung, grew, or sent garbage. The text is the reason for the user."""


class TimedOut(WorkerError):
    """The worker took longer than it may."""

    def __init__(self, kind: Kind, seconds: float) -> None:
        self.kind = kind
        super().__init__(f"the {kind} side did not finish in {seconds:.0f} s")


class Cancelled(WorkerError):
    """The caller asked to stop."""

    def __init__(self) -> None:
        super().__init__("the check was cancelled")


class RemoteError(Exception):
    """Code in the worker raised. ``frames`` are ``(file, line, function)``, outermost first."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.type: str = data["type"]
        self.bases: list[str] = data["bases"]
        self.message: str = data["message"]
        self.frames: list[tuple[str, int, str]] = [(f, n, name) for f, n, name in data["frames"]]
        super().__init__(f"{self.type}: {self.message}" if self.message else self.type)


@dataclass(frozen=True)
class Limits:
    """Seconds to start, bytes of resident memory, processes, and the memory at which an idle worker is replaced."""

    start: float = 120.0
    memory: int = 8 * 1024**3
    processes: int = 32
    growth: int = 3 * 1024**3


ON_GPU = Limits(memory=16 * 1024**3, growth=6 * 1024**3)
"""A card's libraries alone take gigabytes of each process."""


class Worker:
    """One process. Not thread-safe: `Pool` holds a lock around each request."""

    def __init__(
        self,
        kind: Kind,
        python: str,
        device: str,
        limits: Limits,
        cache: Path | None = None,
        readable: tuple[str, ...] = (),
        layers: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.layers = layers
        self.limits = limits
        self.tag = secrets.token_bytes(8)
        self._scratch = Scratch(kind)
        self.scratch = self._scratch.path
        self.count = 0
        self.dirty = False
        """Whether the worker is to be replaced: a program left something running in it."""
        self.refused: list[str] = []
        """What was refused to the program in the last request."""
        self.known: set[int] = set()
        """The processes that it is made of; more are a program's."""
        request = {
            "kind": kind,
            "tag": self.tag.hex(),
            "scratch": self.scratch,
            "layers": layers,
            "readable": readable,
            "writable": [str(cache)] if cache is not None else [],
            "home": os.path.expanduser("~"),
            "gpu": device == "gpu",
        }
        command = [python, "-P", str(_START), json.dumps(request)]
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self.scratch,
                env=worker_environment(kind, device, self.scratch, self.tag.hex(), cache),
                start_new_session=True,
            )
        except OSError:
            self._scratch.remove()
            raise
        assert self.process.stdin is not None and self.process.stdout is not None
        os.set_blocking(self.process.stdin.fileno(), False)
        os.set_blocking(self.process.stdout.fileno(), False)

    @property
    def log(self) -> list[str]:
        """The lines that it wrote before it answered."""
        file = Path(self.scratch, "output.log")
        return file.read_text(errors="replace").strip().splitlines() if file.exists() else []

    @property
    def was_not_contained(self) -> bool:
        """Whether it ended because it could not be shut in: it never ran anything."""
        return any(line.startswith(("bwrap: ", "not contained: ")) for line in self.log)

    def request(self, message: dict[str, Any], timeout: float, cancelled: Callable[[], bool]) -> Any:
        """Sends a message and waits for its answer. Raises WorkerError or RemoteError."""
        self.count += 1
        self.refused = []
        deadline = time.monotonic() + timeout
        try:
            self._write(frame(self.tag, {"id": self.count, **message}), deadline, timeout, cancelled)
            answer = read_frame(self.tag, lambda n: self._read(n, deadline, timeout, cancelled), 4 * 1024**3)
            if not isinstance(answer, dict) or answer.get("id") != self.count:
                raise ProtocolError("an answer to no question")
        except ProtocolError as error:
            raise WorkerError(f"the {self.kind} worker sent garbage: {error}") from error
        self.dirty = bool(answer.get("dirty"))
        self.refused = [str(text) for text in answer.get("refused") or ()]
        if "error" in answer:
            raise RemoteError(answer["error"])
        return answer["value"]

    def _wait(self, event: int, deadline: float, timeout: float, cancelled: Callable[[], bool]) -> None:
        stream = self.process.stdin if event == selectors.EVENT_WRITE else self.process.stdout
        assert stream is not None
        with selectors.DefaultSelector() as selector:
            selector.register(stream, event)
            while not selector.select(0.1):
                if cancelled():
                    raise Cancelled
                if time.monotonic() > deadline:
                    raise TimedOut(self.kind, timeout)
                self._watch()

    def _watch(self) -> None:
        pids = tree(self.process.pid)
        if len(pids) > self.limits.processes:
            raise WorkerError(f"the {self.kind} side started more than {self.limits.processes} processes")
        if resident(pids) > self.limits.memory:
            raise WorkerError(f"the {self.kind} side used more than {self.limits.memory / 1024**3:.0f} GB of memory")

    def _write(self, parts: list[bytes], deadline: float, timeout: float, cancelled: Callable[[], bool]) -> None:
        assert self.process.stdin is not None
        for part in parts:
            view = memoryview(part)
            while view:
                self._wait(selectors.EVENT_WRITE, deadline, timeout, cancelled)
                try:
                    view = view[os.write(self.process.stdin.fileno(), view[: 1 << 16]) :]
                except BrokenPipeError:
                    raise WorkerError(self._death()) from None

    def _read(self, count: int, deadline: float, timeout: float, cancelled: Callable[[], bool]) -> bytes:
        assert self.process.stdout is not None
        parts: list[bytes] = []
        while count:
            self._wait(selectors.EVENT_READ, deadline, timeout, cancelled)
            part = os.read(self.process.stdout.fileno(), min(count, 1 << 20))
            if not part:
                raise WorkerError(self._death())
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _death(self) -> str:
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            return f"the {self.kind} worker closed its pipe"
        number = -code if code < 0 else code - 128
        if number in list(signal.Signals):
            return f"the {self.kind} worker was killed by {signal.Signals(number).name}"
        return f"the {self.kind} worker ended with exit code {code}"

    def close(self) -> None:
        """Ends the process and everything it started, and removes its folder."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        try:
            self.process.wait(3)  # The supervisor sees its pipe close, and kills the worker.
        except subprocess.TimeoutExpired:
            # Before the supervisor: once it is gone, what it looked after is nobody's.
            for pid in reversed(tree(self.process.pid)):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait()
        kill_tagged(self.tag.hex())
        self._scratch.remove()


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
    ) -> None:
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
        self.hello: dict[Kind, dict[str, Any]] = {}
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
        """Asks a worker. Raises WorkerError (the worker is replaced on the next request) or RemoteError."""
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
                        missing += filter(None, [self.hello[kind]["missing"]])
                    except Cancelled:
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
                self.hello[kind] = self._greet(worker, cancelled)
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
                worker = Worker(kind, python, self._where, self.limits, cache, self.readable, self._layers(python))
            except OSError as error:
                raise WorkerError(f"the {kind} interpreter {self._pythons[kind]} does not start: {error}") from error
            self._workers[kind] = worker
        return worker

    def _greet(self, worker: Worker, cancelled: Callable[[], bool]) -> dict[str, Any]:
        try:
            hello: dict[str, Any] = worker.request({"operation": "hello"}, self.limits.start, cancelled)
        except Cancelled:
            raise
        except WorkerError as error:
            raise WorkerError(
                ": ".join([f"{self._pythons[worker.kind]} can't run {worker.kind}: {error}", *worker.log[-1:]])
            ) from error
        return hello

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
        names = {hello["device"] for hello in self.hello.values()} - {"cpu"}
        return f"gpu: {' and '.join(sorted(names))}" if names and self._where == "gpu" else "cpu"

    @property
    def containment(self) -> Containment | None:
        """How the workers are shut in, by the weaker of the two; None before one answered."""
        found = [containment_of(hello["layers"]) for hello in self.hello.values()]
        return max(found, key=lambda one: len(one.not_held), default=None)

    def close(self) -> None:
        """Ends both workers."""
        for kind, lock in self._locks.items():
            with lock:
                self._drop(kind)
        if self.project is not None:
            trim()
