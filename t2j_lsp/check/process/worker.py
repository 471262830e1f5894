"""One worker process: started, asked, watched while it works, and ended with everything that it started."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from t2j_lsp.check.messages import Failure
from t2j_lsp.check.protocol import frame, read_frame
from t2j_lsp.child.frames import MAX_DATA, ProtocolError

from .environment import worker_environment
from .scratch import Scratch
from .watch import kill_tagged, resident, tree

Kind = Literal["torch", "jax"]
_START = Path(__file__).parents[1] / "workers" / "start.py"


_CRASHES = frozenset({"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE"})


class WorkerError(Exception):
    """The worker could not answer: it died, hung, grew, or sent garbage. The text is the reason for the user."""


class Crashed(WorkerError):
    """The worker's machine code failed."""


class TimedOut(WorkerError):
    """The worker took longer than it may."""

    def __init__(self, kind: Kind, seconds: float) -> None:
        self.kind = kind
        super().__init__(f"the {kind} side did not finish in {seconds:.0f} s")


class OutOfMemory(WorkerError):
    """The worker took more memory than it may."""

    def __init__(self, kind: Kind, limit: int) -> None:
        super().__init__(f"the {kind} side used more than {limit / 1024**3:.0f} GB of memory")


class CheckCancelled(WorkerError):
    """The caller asked to stop."""

    def __init__(self) -> None:
        super().__init__("the check was cancelled")


class RemoteError(Exception):
    """Code in the worker raised."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(str(failure))


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
        quick: bool = True,
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
                env=worker_environment(kind, device, self.scratch, self.tag.hex(), cache, quick),
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
            answer = read_frame(self.tag, lambda n: self._read(n, deadline, timeout, cancelled), MAX_DATA)
            if not isinstance(answer, dict) or answer.get("id") != self.count:
                raise ProtocolError("an answer to no question")
        except ProtocolError as error:
            raise WorkerError(f"the {self.kind} worker sent garbage: {error}") from error
        self.dirty = bool(answer.get("dirty"))
        self.refused = [str(text) for text in answer.get("refused") or ()]
        if "error" in answer:
            raise RemoteError(Failure.from_plain(answer["error"]))
        return answer["value"]

    def _wait(self, event: int, deadline: float, timeout: float, cancelled: Callable[[], bool]) -> None:
        stream = self.process.stdin if event == selectors.EVENT_WRITE else self.process.stdout
        assert stream is not None
        with selectors.DefaultSelector() as selector:
            selector.register(stream, event)
            while not selector.select(0.1):
                if cancelled():
                    raise CheckCancelled
                if time.monotonic() > deadline:
                    raise TimedOut(self.kind, timeout)
                self._watch()

    def _watch(self) -> None:
        pids = tree(self.process.pid)
        if len(pids) > self.limits.processes:
            raise WorkerError(f"the {self.kind} side started more than {self.limits.processes} processes")
        if resident(pids) > self.limits.memory:
            raise OutOfMemory(self.kind, self.limits.memory)

    def _write(self, parts: list[bytes], deadline: float, timeout: float, cancelled: Callable[[], bool]) -> None:
        assert self.process.stdin is not None
        for part in parts:
            view = memoryview(part)
            while view:
                self._wait(selectors.EVENT_WRITE, deadline, timeout, cancelled)
                try:
                    view = view[os.write(self.process.stdin.fileno(), view[: 1 << 16]) :]
                except BrokenPipeError:
                    raise self._death() from None

    def _read(self, count: int, deadline: float, timeout: float, cancelled: Callable[[], bool]) -> bytes:
        assert self.process.stdout is not None
        parts: list[bytes] = []
        while count:
            self._wait(selectors.EVENT_READ, deadline, timeout, cancelled)
            part = os.read(self.process.stdout.fileno(), min(count, 1 << 20))
            if not part:
                raise self._death()
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _death(self) -> WorkerError:
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            return WorkerError(f"the {self.kind} worker closed its pipe")
        number = -code if code < 0 else code - 128
        if number in list(signal.Signals):
            kind = Crashed if signal.Signals(number).name in _CRASHES else WorkerError
            return kind(f"the {self.kind} worker was killed by {signal.Signals(number).name}")
        return WorkerError(f"the {self.kind} worker ended with exit code {code}")

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
