"""Diagnostics that the client pulls, where it can."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from lsprotocol import types

from t2j_lsp.lsp.diagnostics import SOURCE, Report

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server


def register(server: Server) -> None:
    server.on_initialize.append(lambda: _offer(server) if server.client.pull_diagnostics else None)


def _offer(server: Server) -> None:
    @server.feature(
        types.TEXT_DOCUMENT_DIAGNOSTIC,
        types.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=False, identifier=SOURCE),
    )
    def diagnostic(params: types.DocumentDiagnosticParams) -> Report | Awaitable[Report]:
        program = server.store.program(params.text_document.uri)
        if program is None:
            return types.RelatedFullDocumentDiagnosticReport([])
        return server.diagnostics.pull(program, params)
