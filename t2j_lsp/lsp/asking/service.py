"""The server's side of asking a model: the process, one at a time, which is killed with its workers to cancel it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from t2j_lsp.contract import T2JError
from t2j_lsp.lsp.child import start_child

LIMIT = 64 * 1024 * 1024
"""Bytes of a line: a whole conversion, or a prompt with two of them."""
GRACE = 5.0
"""Seconds that the process may take to end after its answer."""
NEEDED = ("openai", "numpy")

Progress = Callable[[str, int], None]
"""Called with the step of the loop, and the tokens that have come so far."""


class AskingProcess:
    """Runs one request in a process of its own. Everything here happens on the event loop."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._busy = False
        self._cancelled = False

    @property
    def busy(self) -> bool:
        return self._busy

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    async def run(self, request: dict[str, Any], progress: Progress = lambda step, tokens: None) -> Any:
        """The answer; None where it was cancelled. Raises T2JError with what went wrong."""
        if self._busy:
            raise T2JError("a model is being asked already: wait for its answer, or cancel it")
        self._busy, self._cancelled = True, False
        try:
            self._process = await start_child("t2j_lsp.lsp.asking.process", LIMIT)
            if self._cancelled:
                return None
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            return await self._answer(self._process, progress)
        except OSError as error:
            raise T2JError(f"the process that asks models can't be run: {error.strerror}") from None
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            await self._end()
            self._busy = False

    async def _answer(self, process: asyncio.subprocess.Process, progress: Progress) -> Any:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            message = json.loads(line)
            if "progress" in message:
                progress(message["progress"], message["tokens"])
            elif "error" in message:
                raise T2JError(message["error"])
            else:
                return message["value"]
        if self._cancelled:
            return None
        raise T2JError("the process that asks models ended; the server's log says why")

    def cancel(self) -> None:
        """End what runs, at once: the request, the check of an answer, and its workers, whose pipes close."""
        self._cancelled = True
        if self._process is not None:
            _kill(self._process)

    async def _end(self) -> None:
        """Wait until it is gone; after its answer it ends by itself."""
        process, self._process = self._process, None
        if process is None:
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


def missing() -> str | None:
    """Why no model can be asked from this interpreter; None where one can."""
    importlib.invalidate_caches()
    lacking = [name for name in NEEDED if find_spec(name) is None]
    if not lacking:
        return None
    return f"asking a model needs {' and '.join(lacking)} in {sys.executable}: pip install {' '.join(lacking)}"
