"""The server: what is open, what the client can do and wants, and the services that the features ask."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from t2j_lsp import __version__
from t2j_lsp.lsp.analysis.model import Settings as ConversionSettings
from t2j_lsp.lsp.analysis.service import AnalysisService
from t2j_lsp.lsp.asking.service import AskingProcess
from t2j_lsp.lsp.checking.service import CheckService
from t2j_lsp.lsp.features import (
    actions,
    ask,
    commands,
    configuration,
    containment,
    conversions,
    convert_and_check,
    diagnostics,
    explain_difference,
    fixes,
    hints,
    hover,
    inputs,
    lenses,
    pausing,
    workspace,
)
from t2j_lsp.lsp.features.ask_offers import Gap, look_for_fixes
from t2j_lsp.lsp.features.project_file import NAME as PROJECT_FILE
from t2j_lsp.lsp.features.project_file import ProjectFiles
from t2j_lsp.lsp.similar.captures import Captures
from t2j_lsp.lsp.similar.service import SimilarService
from t2j_lsp.lsp.survey.service import SurveyService

from .client import Client, client_of
from .documents import DocumentStore, Program
from .paths import to_path
from .protocol import Protocol
from .settings import Read, Settings, find_pyproject, from_client, from_pyproject, settings_of
from .transport import BlockingWriter, guard_stdio, read_messages, read_stream

log = logging.getLogger("t2j.lsp")

FEATURES = (
    hover,
    actions,
    lenses,
    inputs,
    hints,
    commands,
    conversions,
    convert_and_check,
    ask,
    containment,
    explain_difference,
    fixes,
    workspace,
    pausing,
    configuration,
)
NOTEBOOKS = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithNotebook(
            notebook=types.NotebookDocumentFilterNotebookType(notebook_type="jupyter-notebook"),
            cells=[types.NotebookCellLanguage(language="python")],
        )
    ],
    save=True,
)
STATUS = "t2j/status"
SETTLE = 1.0
"""Seconds after the start at which memory is tidied up."""
PARENT_WATCH = 5.0
"""Seconds between looks at whether the client's process still lives."""


class Server(LanguageServer):
    """The state that features share."""

    protocol: Protocol

    def __init__(self) -> None:
        super().__init__("t2j", __version__, notebook_document_sync=NOTEBOOKS, protocol_cls=Protocol)
        self.store = DocumentStore()
        self.client = Client()
        self.folders: tuple[Path, ...] = ()
        self.trusted = False
        self.exit_code: int | None = None
        self._client_settings = Read()
        self._settings: dict[str | None, Settings] = {}
        self.service = AnalysisService(self.conversion_settings)
        self.checks = CheckService(self)
        self.survey = SurveyService(self)
        self.asking = AskingProcess()
        self.model_keys: dict[str, str] = {}
        """Keys that the client handed over, by host; in memory alone."""
        self.similar_fixes: dict[Gap, int] = {}
        """How many fixed bugs are like a gap."""
        self.similar = SimilarService(self)
        self.captures = Captures(self)
        self.diagnostics = diagnostics.Diagnostics(self)
        self.project_files = ProjectFiles(self)
        self.service.on_analysis = self._analysed
        self.service.on_state = self.announce
        self.progress_cancels: dict[str, Callable[[], None]] = {}
        self._announced: dict[str, Any] = {}
        self._about: str | None = None
        self._refreshing: set[str] = set()
        self.fresh_conversions: dict[str, tuple[tuple[int, str | None], bool]] = {}
        """Whether each program's conversion is up to date, for a revision of it and a text beside it."""
        self.ended = asyncio.Event()
        self.background: set[asyncio.Task[Any]] = set()
        self._register()
        for feature in FEATURES:
            feature.register(self)

    # --- life -----------------------------------------------------------------------------------------------------

    def _register(self) -> None:
        @self.feature(types.INITIALIZE)
        def initialize(params: types.InitializeParams) -> None:
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
            if self.client.pull_diagnostics:
                diagnostics.register(self)
            self.service.start()
            self.checks.start()
            if params.process_id:
                self.spawn(self._watch_parent(params.process_id))

        @self.feature(types.SHUTDOWN)
        async def shutdown(_: Any) -> None:
            await self.stop()

    async def stop(self) -> None:
        """End the processes."""
        self.asking.cancel()
        await self.checks.close()
        await self.survey.close()
        await self.similar.close()
        await self.service.close()

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

    def forget_settings(self) -> None:
        """Read settings again on their next use."""
        self._settings.clear()

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

    # --- texts ----------------------------------------------------------------------------------------------------

    def opened(self, program: Program) -> None:
        self._settings.pop(program.uri, None)
        self.survey.touch()
        self._analyse(program)
        if not program.is_notebook:
            self.project_files.refresh()
            self.diagnostics.opened_or_closed(program.uri)
            self.checks.opened(program.uri)

    def changed(self, changed: Program) -> None:
        """A document or notebook has a new text."""
        self._analyse(changed)
        self.survey.touch()
        if changed.uri.endswith(f"/{PROJECT_FILE}"):
            self.project_files.refresh()
        if not changed.is_notebook:
            self.checks.edited(changed.uri)

    def _analyse(self, changed: Program) -> None:
        program = self.store.program(changed.uri)
        if program is None:
            return
        if program is not changed and program.is_notebook:
            program.touch(program.version)  # type: ignore[union-attr]
        # Some clients name no language where none was detected.
        if program.is_notebook or getattr(program, "language", "") in ("python", "") or program.uri.endswith(".py"):
            self.service.update(program)

    def closed(self, uri: str) -> None:
        self.service.drop(uri)
        self.diagnostics.clear(uri)
        self.project_files.refresh()
        self.diagnostics.opened_or_closed(uri)
        self.survey.touch()
        self._settings.pop(uri, None)

    def _analysed(self, uri: str) -> None:
        program = self.store.program(uri)
        known = self.service.known.get(uri)
        if program is None:
            return
        self.diagnostics.analysed(program)
        self.similar.analysed(program)
        if known is not None and known.analysis.complete:
            look_for_fixes(self, program)
            self.refresh_views()

    def reconfigured(self) -> None:
        """Settings have changed: everything that depends on them is worked out again."""
        for program in self.store.programs():
            self._analyse(program)
            self.diagnostics.publish(program)
        self.project_files.refresh()
        self.checks.reconsider()
        self.survey.touch(walk=True)
        self.refresh_views()

    # --- telling the client ---------------------------------------------------------------------------------------

    def announce(self, state: str, uri: str | None = None, message: str | None = None) -> None:
        """``t2j/status``: starting, idle, analysing, checking, paused or error, for a status item.

        Instead of ``idle`` it is ``paused``, with ``reason``, while checks in the background wait. ``device`` is where
        the last check ran. While one runs it is ``checking``, with the step that it is at as ``message``, and how many
        are ``waiting`` behind it: an analysis meanwhile is not said.
        """
        if self.checks.is_running and state in ("idle", "analysing"):
            return
        reason = self.checks.pausing.reason if state == "idle" else None
        known: dict[str, Any] = {"state": "paused", "reason": reason} if reason is not None else {"state": state}
        if state == "checking":
            waiting = self.checks.waiting
            known |= {"message": message} if message else {}
            known |= {"waiting": waiting} if waiting else {}
        if self.checks.device is not None:
            known["device"] = self.checks.device
        if known != self._announced:
            self._announced = known
            self._about = uri
            self.protocol.notify(STATUS, {**known, **({"uri": uri} if uri else {})})

    def announce_waiting(self) -> None:
        """Say how many checks wait by now behind the running one."""
        self.announce("checking", self._about, self._announced.get("message"))

    def announce_pause(self) -> None:
        """Say that checks pause, or do no longer, where nothing else is said at this moment."""
        if self._announced.get("state") in ("idle", "paused"):
            self.announce("idle")

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

    # --- errors ---------------------------------------------------------------------------------------------------

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Errors go to the log: a message box for each is what users complain about."""
        log.error("%s", type(error).__name__)


def serve(address: tuple[str, int] | None, log_level: str) -> int:
    """Run the server until the client is done with it, and return the exit code."""
    streams = None if address is not None else guard_stdio()
    logging.basicConfig(stream=sys.stderr, level=log_level.upper(), format="%(asctime)s %(levelname)s %(message)s")
    # pygls logs messages with their contents.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    try:
        return asyncio.run(_serve(address, streams))
    except KeyboardInterrupt:
        return 130


async def _serve(address: tuple[str, int] | None, streams: Any) -> int:
    server = Server()
    loop = asyncio.get_running_loop()

    def handle(body: bytes | None) -> None:
        if body is None:
            server.ended.set()
        else:
            server.protocol.receive(body)

    loop.call_later(SETTLE, _settle_memory)
    if streams is not None:
        source, sink = streams
        writer: Any = BlockingWriter(sink)
        server.protocol.set_writer(writer)
        post = lambda body: loop.call_soon_threadsafe(handle, body)  # noqa: E731
        threading.Thread(target=_read, args=(source, post), name="t2j-reader", daemon=True).start()
        await server.ended.wait()
        writer.close()
    else:
        assert address is not None
        await _serve_tcp(server, address, handle)
    await server.stop()
    for task in server.background:
        task.cancel()
    if server.exit_code is None:
        return 0
    return server.exit_code


def _settle_memory() -> None:
    """Take what the start has made out of the garbage collector's sight: looking through it costs tens of ms."""
    gc.collect()
    gc.freeze()
    gc.enable()


def _read(source: Any, post: Any) -> None:
    try:
        read_messages(source, post)
    except RuntimeError:
        return  # The loop is closed: the server has ended.


async def _serve_tcp(server: Server, address: tuple[str, int], handle: Any) -> None:
    """Serve one client; a second one is turned away while the first is there."""
    taken: Future[None] = Future()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if taken.done():
            writer.close()
            return
        taken.set_result(None)
        server.protocol.set_writer(writer)
        await read_stream(reader, handle)

    listening = await asyncio.start_server(connected, *address)
    host, port = listening.sockets[0].getsockname()[:2]
    print(f"listening on {host}:{port}", file=sys.stderr, flush=True)
    async with listening:
        await server.ended.wait()
