"""The server's side of the survey: the last answer, what changed since, and a word to the client when it differs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from typing import Any

from t2j_lsp.contract import T2JError
from t2j_lsp.lsp.child import start_child
from t2j_lsp.lsp.documents import Document
from t2j_lsp.lsp.paths import to_path, to_uri
from t2j_lsp.lsp.session import Session

log = logging.getLogger("t2j.lsp")

CHANGED = "t2j/workspaceChanged"
DEBOUNCE = 0.5
"""Seconds without another change before files are looked at again."""
KEEP_WARM = 300.0
"""Seconds that the process is kept without being asked."""
ERROR = b'{"error":'
LIMIT = 256 * 1024 * 1024


class SurveyService:
    """Everything here happens on the event loop. Nothing is looked at before the client has asked once."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._answer: bytes | None = None
        """The last answer as it came: that of a large workspace takes megabytes once it is read."""
        self._outdated = True
        self._walk = True
        self._timer: asyncio.TimerHandle | None = None
        self._lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._sent: dict[str, int] = {}
        """The revision of each buffer that the process has."""
        self._idle: asyncio.TimerHandle | None = None

    async def answer(self, refresh: bool = False) -> dict[str, Any]:
        """The state of the workspace; ``refresh`` looks for new and vanished files as well. Raises T2JError."""
        self._walk = self._walk or refresh
        found: dict[str, Any] = json.loads(await self._present(refresh))
        return found

    async def _present(self, refresh: bool = False) -> bytes:
        async with self._lock:
            if self._answer is None or self._outdated or refresh:
                self._answer = await self._survey()
            return self._answer

    def touch(self, *, walk: bool = False) -> None:
        """Something changed that the answer depends on; with ``walk``, there may be other files than before."""
        self._outdated = True
        self._walk = self._walk or walk
        if self._answer is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(DEBOUNCE, self._due)

    def _due(self) -> None:
        self._timer = None
        self.session.spawn(self._compare())

    async def _compare(self) -> None:
        """Look again, and tell the client where something is another one than in the last answer."""
        before = self._answer
        try:
            after = await self._present()
        except T2JError as error:
            log.warning("%s", error)
            return
        if after != before:
            self.session.protocol.notify(CHANGED, {})

    # --- the process ----------------------------------------------------------------------------------------------

    async def _survey(self) -> bytes:
        walk, self._walk, self._outdated = self._walk, False, False
        suffixes = {f: self.session.settings_for(to_uri(f / "file.py")).suffix for f in self.session.folders}
        try:
            process = await self._started()
            opened, closed = self._buffers()
            request = {
                "folders": {str(folder): suffix for folder, suffix in suffixes.items()},
                "walk": walk,
                "opened": opened,
                "closed": closed,
            }
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps(request).encode() + b"\n")
            line = await process.stdout.readline()
            if not line:
                raise T2JError("the survey of the workspace failed; see the log")
        except (T2JError, OSError, ValueError) as error:
            self._end()
            self._walk = self._outdated = True
            raise T2JError(str(error)) from None
        except asyncio.CancelledError:
            # Its answer would be taken for the next one's.
            self._end()
            self._walk = self._outdated = True
            raise
        self._keep_warm()
        if line.startswith(ERROR):
            self._outdated = True
            raise T2JError(json.loads(line)["error"])
        return line

    def _buffers(self) -> tuple[dict[str, str], list[str]]:
        """The texts that are open and that the process has not, and the paths that are not open any more."""
        present = {str(path): d for d in self._documents() if (path := to_path(d.uri)) is not None}
        opened = {path: d.text for path, d in present.items() if self._sent.get(path) != d.revision}
        closed = [path for path in self._sent if path not in present]
        self._sent = {path: d.revision for path, d in present.items()}
        return opened, closed

    def _documents(self) -> list[Document]:
        return [d for d in self.session.store.programs() if isinstance(d, Document) and d.uri.endswith(".py")]

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._sent = {}
            self._process = await start_child("t2j_lsp.lsp.survey.process", LIMIT)
        return self._process

    def _keep_warm(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(KEEP_WARM, self._end)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    async def close(self) -> None:
        for timer in (self._timer, self._idle):
            if timer is not None:
                timer.cancel()
        process = self._process
        self._end()
        if process is not None:
            await process.wait()
