"""Go to implementations: from a line of PyTorch to its conversion, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from t2j_lsp.contract import Span, T2JError
from t2j_lsp.lsp.documents import Document
from t2j_lsp.lsp.paths import to_path

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server


def register(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_IMPLEMENTATION)
    async def implementation(params: types.ImplementationParams) -> list[types.Location]:
        program = server.store.program(params.text_document.uri)
        pair = _other(server, program.uri) if program is not None else None
        if program is None or pair is None:
            return []
        uri, path = pair
        other = server.store.program(uri)
        try:
            if other is None and not server.pairs.is_notebook(uri):
                other = Document(uri, server.pairs.text(uri, path)[0], None)
        except T2JError:
            return []
        line = program.line_of(params.text_document.uri, params.position.line)
        if other is None or line is None:
            return []
        place: Span | None = await server.service.ask_plain(
            "counterpart", text=program.text, other=other.text, line=line + 1
        )
        if place is None:
            return []
        start = server.store.position(other, place.line - 1, place.column)
        end = server.store.position(other, place.end_line - 1, place.end_column)
        shown, _ = other.place(place.line - 1)
        return [types.Location(shown, types.Range(start, end))]


def _other(server: Server, uri: str) -> tuple[str, Path] | None:
    """The other file of a document's pair: of a conversion its source, of a source its conversion."""
    source = server.pairs.source_of(uri)
    if source is None or source == uri:
        return server.pairs.converted_of(uri)
    path = to_path(source)
    return (source, path) if path is not None else None
