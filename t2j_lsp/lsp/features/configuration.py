"""Settings that change while the server runs: the client's, ``pyproject.toml``'s, and workspace folders."""

from __future__ import annotations

import asyncio
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from t2j_lsp.check.process.scratch import remove_abandoned
from t2j_lsp.lsp.paths import to_path

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server

SECTION = "t2j"


def register(server: Server) -> None:
    @server.feature(types.INITIALIZED)
    def initialized(_: Any) -> None:
        server.spawn(_subscribe(server))
        server.diagnostics.look_at_project_files()
        server.spawn(asyncio.to_thread(remove_abandoned))

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def changed(params: types.DidChangeConfigurationParams) -> None:
        if server.client.configuration:
            server.spawn(_fetch(server))
        else:
            data = params.settings
            server.configure(data.get(SECTION, data) if isinstance(data, dict) else None)
            server.reconfigured()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: types.DidChangeWatchedFilesParams) -> None:
        names = {PurePosixPath(change.uri).name for change in params.changes}
        if "pyproject.toml" in names:
            server.forget_settings()
            server.reconfigured()
        others = any(change.type != types.FileChangeType.Changed for change in params.changes)
        server.survey.touch(walk=others)
        for change in params.changes:
            if change.uri not in server.store.documents and change.uri.endswith(".py"):
                server.checks.edited(change.uri)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        removed = {to_path(folder.uri) for folder in params.event.removed}
        added = [to_path(folder.uri) for folder in params.event.added]
        kept = [folder for folder in server.folders if folder not in removed]
        server.folders = (*kept, *(path for path in added if path is not None))
        server.forget_settings()
        server.reconfigured()


async def _subscribe(server: Server) -> None:
    registrations: list[types.Registration] = []
    if server.client.watched_files:
        watchers = [types.FileSystemWatcher("**/pyproject.toml"), types.FileSystemWatcher("**/*.{py,ipynb}")]
        options: Any = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        registrations.append(types.Registration("t2j-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
    if server.client.dynamic_configuration:
        section: Any = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
        registrations.append(types.Registration("t2j-settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, section))
    if registrations:
        await server.protocol.ask(types.CLIENT_REGISTER_CAPABILITY, types.RegistrationParams(registrations))
    if server.client.configuration:
        await _fetch(server)


async def _fetch(server: Server) -> None:
    items = [types.ConfigurationItem(section=SECTION)]
    answer = await server.protocol.ask(types.WORKSPACE_CONFIGURATION, types.ConfigurationParams(items))
    if isinstance(answer, list | tuple) and answer and answer[0] is not None:
        server.configure(answer[0])
        server.reconfigured()
