"""The server's side of the survey: the last answer, what changed since, and a word to the client when it differs."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

from t2j_lsp.child.process import Child, ChildDied, ChildFailed
from t2j_lsp.contract import T2JError
from t2j_lsp.lsp.documents import Document
from t2j_lsp.lsp.paths import to_path, to_uri
from t2j_lsp.lsp.session import Session

log = logging.getLogger("t2j.lsp")

CHANGED = "t2j/workspaceChanged"
DEBOUNCE = 0.5
"""Seconds without another change before files are looked at again."""
KEEP_WARM = 300.0
"""Seconds that the process is kept without being asked."""


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
        self._process = Child("t2j_lsp.lsp.survey.process", keep_warm=lambda: KEEP_WARM)
        self._sent: dict[str, int] = {}
        """The revision of each buffer that the process has."""

    async def answer(self, refresh: bool = False) -> dict[str, Any]:
        """The state of the workspace; ``refresh`` looks for new and vanished files as well. Raises T2JError."""
        self._walk = self._walk or refresh
        answer: dict[str, Any] = json.loads(await self._present(refresh))
        return answer

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
        if not self._process.is_alive:
            self._sent = {}
        opened, closed = self._buffers()
        folders = {str(folder): suffix for folder, suffix in suffixes.items()}
        request = {"folders": folders, "walk": walk, "opened": opened, "closed": closed}
        try:
            return await self._process.ask_raw("survey", request)
        except ChildDied:
            self._walk = self._outdated = True
            raise T2JError("the survey of the workspace failed; see the log") from None
        except ChildFailed as error:
            self._outdated = True
            raise T2JError(f"an error inside t2j: {error}") from None
        except T2JError:
            self._outdated = True
            raise
        except asyncio.CancelledError:
            self._walk = self._outdated = True
            raise

    def _buffers(self) -> tuple[dict[str, str], list[str]]:
        """The texts that are open and that the process has not, and the paths that are not open any more."""
        present = {str(path): d for d in self._documents() if (path := to_path(d.uri)) is not None}
        opened = {path: d.text for path, d in present.items() if self._sent.get(path) != d.revision}
        closed = [path for path in self._sent if path not in present]
        self._sent = {path: d.revision for path, d in present.items()}
        return opened, closed

    def _documents(self) -> list[Document]:
        return [d for d in self.session.store.programs() if isinstance(d, Document) and d.uri.endswith(".py")]

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._process.end()
