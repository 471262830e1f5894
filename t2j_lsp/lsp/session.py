"""What services and features share: what is open, what the client can do and wants, and how it is told something."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lsprotocol import types

from t2j_lsp import __version__
from t2j_lsp.lsp.analysis.model import ConversionSettings
from t2j_lsp.lsp.analysis.service import AnalysisService

from .client import ClientAbilities, client_of
from .documents import DocumentStore
from .pairs import Pairs
from .paths import to_path
from .protocol import Host, Protocol
from .settings import Read, Settings, find_pyproject, from_client, from_pyproject, settings_of
from .status import Status

log = logging.getLogger("t2j.lsp")

NOTEBOOKS = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithNotebook(
            notebook=types.NotebookDocumentFilterNotebookType(notebook_type="jupyter-notebook"),
            cells=[types.NotebookCellLanguage(language="python")],
        )
    ],
    save=True,
)
PARENT_WATCH = 5.0
"""Seconds between looks at whether the client's process still lives."""


class Session(Host):
    """One client's session. It knows no service but the analysis, and no feature: those know it."""

    protocol: Protocol

    def __init__(self) -> None:
        super().__init__("t2j", __version__, notebook_document_sync=NOTEBOOKS, protocol_cls=Protocol)
        self.store = DocumentStore()
        self.client = ClientAbilities()
        self.folders: tuple[Path, ...] = ()
        self.trusted = False
        self._client_settings = Read()
        self._settings: dict[str | None, Settings] = {}
        self.pairs = Pairs(self.store, lambda uri: self.settings_for(uri).suffix)
        self.status = Status(self.protocol.notify)
        self.service = AnalysisService(self.conversion_settings)
        self.service.on_state = self.status.announce
        self.progress_cancels: dict[str, Callable[[], None]] = {}
        self.fresh_conversions: dict[str, tuple[tuple[int, str | None], bool]] = {}
        """Whether each program's conversion is up to date, for a revision of it and a text beside it."""
        self._refreshing: set[str] = set()
        self.background: set[asyncio.Task[Any]] = set()

    # --- life -----------------------------------------------------------------------------------------------------

    def begin(self, params: types.InitializeParams) -> None:
        """Read what the client says of itself with ``initialize``."""
        self.client = client_of(params)
        self.store.encoding = str(  # type: ignore[assignment]
            getattr(self.protocol.workspace.position_encoding, "value", self.protocol.workspace.position_encoding)
        )
        roots = [folder.uri for folder in params.workspace_folders or ()] or [params.root_uri or ""]
        self.folders = tuple(path for path in map(to_path, roots) if path is not None)
        options = params.initialization_options
        options = options if isinstance(options, dict) else {}
        self.trusted = options.get("trusted") is True
        self.configure(options.get("settings"))
        if params.process_id:
            self.spawn(self._watch_parent(params.process_id))

    def spawn(self, work: Any) -> asyncio.Task[Any]:
        """Run a coroutine in the background; what it raises is logged."""
        task = asyncio.get_running_loop().create_task(work)
        self.background.add(task)
        task.add_done_callback(self._background_done)
        return task

    def _background_done(self, task: asyncio.Task[Any]) -> None:
        self.background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("work in the background failed", exc_info=error)

    async def _watch_parent(self, pid: int) -> None:
        while sys.platform != "win32":
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                self.ended.set()
                return
            except PermissionError:
                return
            await asyncio.sleep(PARENT_WATCH)

    # --- settings -------------------------------------------------------------------------------------------------

    def configure(self, data: Any) -> None:
        """Take the client's settings. What can't be used is logged, and the rest holds."""
        self._client_settings = from_client(data)
        for problem in self._client_settings.problems:
            log.warning("%s", problem)
        self.forget_settings()

    def forget_settings(self, uri: str | None = None) -> None:
        """Read settings again on their next use; those of one document, where it is given."""
        if uri is None:
            self._settings.clear()
        else:
            self._settings.pop(uri, None)

    def settings_for(self, uri: str | None) -> Settings:
        """The settings that hold for a document, by the nearest ``pyproject.toml`` of its workspace folder."""
        if uri not in self._settings:
            program = self.store.program(uri) if uri is not None else None
            path = to_path(program.uri if program is not None else uri) if uri is not None else None
            project = find_pyproject(path, self.folders) if path is not None else None
            read = from_pyproject(project) if project is not None else Read()
            for problem in read.problems:
                log.warning("%s", problem)
            self._settings[uri] = settings_of(read, self._client_settings)
        return self._settings[uri]

    def conversion_settings(self, uri: str) -> tuple[ConversionSettings, str | None]:
        """What a document is converted with, and its path.

        A buffer that is no file has no module beside it: its helpers stand in it.
        """
        path = to_path(uri)
        settings = self.settings_for(uri).conversion
        if settings.helpers == "module" and path is None:
            settings = replace(settings, helpers="inline")
        return settings, str(path) if path is not None else None

    # --- telling the client ---------------------------------------------------------------------------------------

    def refresh_views(self) -> None:
        """Ask the client to ask again for lenses and hints; once, however often this is called before it answers."""
        if self.client.code_lens_refresh:
            self._refresh(types.WORKSPACE_CODE_LENS_REFRESH)
        if self.client.inlay_hint_refresh:
            self._refresh(types.WORKSPACE_INLAY_HINT_REFRESH)

    def _refresh(self, method: str) -> None:
        if method in self._refreshing:
            return
        self._refreshing.add(method)

        async def ask() -> None:
            try:
                await self.protocol.ask(method)
            finally:
                self._refreshing.discard(method)

        self.spawn(ask())

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Errors go to the log: a message box for each is what users complain about."""
        log.error("%s", type(error).__name__)
