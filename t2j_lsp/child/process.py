"""The parent's side, on an event loop: a child is started when it is asked, kept warm, and replaced once it died."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from t2j_lsp.contract import T2JError

from .frames import HEAD, JSON, NO_TAG, Codec, ProtocolError, lengths, message

GRACE = 5.0
"""Seconds that a child may take to stop a request, or to end, before it is killed."""


class ChildFailed(Exception):
    """The child could not answer; the text says what is known of the reason."""


class ChildDied(ChildFailed):
    """The child is gone; the next request starts another one."""

    def __init__(self, module: str, code: int | None) -> None:
        super().__init__(f"{module} ended with code {code}")
        self.code = code


class ChildNotStarted(ChildFailed):
    """The interpreter can't be run."""


class Cancelled(Exception):
    """The request was cancelled with `Child.cancel`."""


class Child:
    """A process that runs a module of ours, and answers one request at a time; others wait for their turn.

    Args:
        module: what runs, by ``python -P -m``.
        codec: how arguments and values cross; the module names the same.
        refusals: the errors that are answers, as the module names them.
        keep_warm: gives the seconds for which the process is kept without being asked; None keeps it for good.
    """

    def __init__(
        self,
        module: str,
        codec: Codec = JSON,
        refusals: tuple[type[Exception], ...] = (T2JError,),
        keep_warm: Callable[[], float] | None = None,
    ) -> None:
        self._module = module
        self._codec = codec
        self._refusals = refusals
        self._keep_warm = keep_warm
        self._process: asyncio.subprocess.Process | None = None
        self.python = ""
        """The interpreter of the process that was started last."""
        self._killed = False
        self._turn = asyncio.Lock()
        self._count = 0
        self._running = 0
        self._unwanted = 0
        self._idle: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def is_alive(self) -> bool:
        """Whether there is a process."""
        return self._process is not None and self._process.returncode is None and not self._killed

    @property
    def pid(self) -> int | None:
        """The process, where there is one."""
        return self._process.pid if self._process is not None and self.is_alive else None

    @property
    def is_running(self) -> bool:
        """Whether a request is being answered."""
        return self._running != 0

    # --- asking ---------------------------------------------------------------------------------------------------

    async def ask(
        self,
        operation: str,
        arguments: dict[str, Any],
        on_progress: Callable[[Any], None] = lambda _: None,
        python: str = sys.executable,
    ) -> Any:
        """The value of a request. Whoever stops waiting for it ends the process.

        Raises Cancelled, ChildFailed, or one of the refusals.
        """
        return self._codec.loads(await self.ask_raw(operation, arguments, on_progress, python))

    async def ask_raw(
        self,
        operation: str,
        arguments: dict[str, Any],
        on_progress: Callable[[Any], None] = lambda _: None,
        python: str = sys.executable,
    ) -> bytes:
        """What `ask` does, with the value as it came."""
        async with self._turn:
            self._count += 1
            self._running = self._count
            process: asyncio.subprocess.Process | None = None
            try:
                process = await self._started(python)
                if self._running == self._unwanted:
                    raise Cancelled
                self._send({"id": self._running, "operation": operation}, self._codec.dumps(arguments))
                answer = await self._answer(process, on_progress)
                if self._running == self._unwanted:
                    raise Cancelled
                return answer
            except (asyncio.IncompleteReadError, ConnectionError, ProtocolError):
                assert process is not None
                self.kill()
                code = await process.wait()
                if self._running == self._unwanted:
                    raise Cancelled from None
                raise ChildDied(self._module, code) from None
            except asyncio.CancelledError:
                # Its answer would be taken for that of the next request.
                self.kill()
                raise
            finally:
                self._running = 0
                self.stay_warm()

    async def _answer(self, process: asyncio.subprocess.Process, on_progress: Callable[[Any], None]) -> bytes:
        assert process.stdout is not None
        while True:
            sizes = lengths(NO_TAG, await process.stdout.readexactly(HEAD.size))
            about = json.loads(await process.stdout.readexactly(sizes[0]))
            data = await process.stdout.readexactly(sizes[1])
            match about["answer"]:
                case "progress":
                    on_progress(self._codec.loads(data))
                case "value":
                    return data
                case "cancelled":
                    raise Cancelled
                case "refused":
                    index, text = json.loads(data)
                    raise self._refusals[index](text)
                case _:
                    raise ChildFailed(data.decode())

    def _send(self, about: dict[str, Any], data: bytes = b"") -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError, RuntimeError):
                self._process.stdin.write(message(about, data))

    def cancel(self, grace: float | None = GRACE) -> bool:
        """Tell the running request to stop; whether there is one. After ``grace`` seconds, its process is killed."""
        if not self.is_running or self._running == self._unwanted:
            return False
        self._unwanted = running = self._running
        self._send({"operation": "cancel", "id": running})
        if grace is not None:
            asyncio.get_running_loop().call_later(grace, lambda: self.kill() if self._running == running else None)
        return True

    # --- the process ----------------------------------------------------------------------------------------------

    async def _started(self, python: str) -> asyncio.subprocess.Process:
        if self._idle is not None:
            self._idle.cancel()
        if self.is_alive and self.python != python:
            await self.end()
        if self._process is None or not self.is_alive:
            try:
                self._process = await _start(self._module, python)
            except OSError as error:
                raise ChildNotStarted(f"{python} can't be run: {error.strerror}") from error
            self.python, self._killed = python, False
        return self._process

    def stay_warm(self) -> None:
        """From now on, count the seconds without a request."""
        if self._idle is not None:
            self._idle.cancel()
        if self._keep_warm is not None and self.is_alive and not self.is_running:
            self._idle = asyncio.get_running_loop().call_later(self._keep_warm(), self._end_idle)

    def _end_idle(self) -> None:
        if not self.is_running:
            task = asyncio.get_running_loop().create_task(self.end())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def kill(self) -> None:
        """End the process and its group at once. Workers of its own see their pipes close, and end as well."""
        if self._process is not None:
            self._killed = True
            _kill(self._process)

    async def end(self) -> None:
        """Let the process end, which it does once its pipe is closed; kill it where it stays."""
        if self._idle is not None:
            self._idle.cancel()
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), GRACE)
        except TimeoutError:
            _kill(process)
            await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()


async def _start(module: str, python: str) -> asyncio.subprocess.Process:
    """A process that talks over its standard streams. It leads a group of its own."""
    return await asyncio.create_subprocess_exec(
        python,
        "-P",
        "-m",
        module,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=tempfile.gettempdir(),
        env=_environment(),
        start_new_session=True,
    )


def _environment() -> dict[str, str]:
    """What this process has, with this very package to import, and nothing from where this process stands."""
    root = str(Path(__file__).resolve().parents[2])
    given = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and os.path.isabs(p)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys([root, *given]))}
