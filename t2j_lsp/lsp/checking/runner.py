"""The server's side of the check process: started when something is to be checked, told to stop, killed if it stays."""

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

CANCEL_GRACE = 5.0
"""Seconds that a check may take to stop before its process is killed."""
LIMIT = 64 * 1024 * 1024


def interpreter(jax_python: str | None) -> str:
    """Where the check process runs: what compares arrays needs numpy. The server's own interpreter where that has it.

    Else the JAX side's, since jax brings numpy: a server that comes with an extension carries no compiled package.
    Raises T2JError where neither is there.
    """
    importlib.invalidate_caches()
    if find_spec("numpy") is not None:
        return sys.executable
    if jax_python and jax_python != sys.executable:
        return jax_python
    raise T2JError(f"checks need numpy, torch, jax, flax and optax, and {sys.executable} has no numpy")


class CheckProcess:
    """One process, which runs one check at a time. Not for use from several tasks."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._python = ""
        self._count = 0
        self._running = False
        self.stopped = False
        """Whether the running check was told to stop."""

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.alive else None

    async def run(self, request: dict[str, Any], progress: Callable[[str], None]) -> dict[str, Any] | None:
        """The answer to a request; None where it was stopped. Raises T2JError with what went wrong."""
        self._count += 1
        self._running, self.stopped = True, False
        try:
            process = await self._started(interpreter(request["jax_python"]))
            if self.stopped:
                return None
            # An interpreter that is not set is the server's, wherever the check process runs.
            sides = {name: request[name] or sys.executable for name in ("torch_python", "jax_python")}
            self._send({"id": self._count, "operation": "check", **request, "run_by": sides})
            return await self._answer(process, progress)
        finally:
            self._running = False

    async def _started(self, python: str) -> asyncio.subprocess.Process:
        if self.alive and self._python != python:
            await self.end()
        if self._process is None or not self.alive:
            try:
                self._process = await start_child("t2j_lsp.lsp.checking.process", LIMIT, python)
            except OSError as error:
                raise T2JError(f"{python} can't be run: {error.strerror}") from error
            self._python = python
        return self._process

    async def _answer(
        self, process: asyncio.subprocess.Process, progress: Callable[[str], None]
    ) -> dict[str, Any] | None:
        assert process.stdout is not None
        while True:
            line = await process.stdout.readline()
            if not line:
                await process.wait()
                if self.stopped:
                    return None
                if self._python != sys.executable and process.returncode == 1:
                    needs = "needs Python 3.11 or later, jax, flax and optax"
                    raise T2JError(f"a check can't start in {self._python}: the JAX side's interpreter {needs}")
                raise T2JError("the check process ended; the next check starts another one")
            answer = json.loads(line)
            if answer.get("id") != self._count:
                continue
            if "progress" in answer:
                progress(answer["progress"])
            elif "error" in answer:
                raise T2JError(answer["error"])
            else:
                value: dict[str, Any] | None = answer.get("value")
                return value

    def _send(self, message: dict[str, Any]) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError, RuntimeError):
                self._process.stdin.write(json.dumps(message).encode() + b"\n")

    def stop(self) -> bool:
        """Tell the running check to stop; whether there is one. Follow with `kill_if_it_stays`."""
        if not self._running or self.stopped:
            return False
        self.stopped = True
        self._send({"operation": "cancel", "id": self._count})
        return True

    async def kill_if_it_stays(self) -> None:
        """Wait for a check that was told to stop, and kill the process where it does not."""
        count, deadline = self._count, asyncio.get_running_loop().time() + CANCEL_GRACE
        while self._running and self._count == count:
            if asyncio.get_running_loop().time() > deadline:
                self.kill()
                return
            await asyncio.sleep(0.1)

    def kill(self) -> None:
        """End the process at once; its workers see their pipes close and end as well."""
        if self._process is not None and self.alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()

    async def end(self) -> None:
        """Let the process end, with its workers."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), CANCEL_GRACE)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
