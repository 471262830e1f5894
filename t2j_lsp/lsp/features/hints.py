"""Inlay hints: the shapes of tensors, as the last check saw them. Off by default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server

MAX_SHAPES = 3


def register(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT, types.InlayHintOptions())
    def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
        uri = params.text_document.uri
        document, program = server.store.document(uri), server.store.program(uri)
        state = server.checks.states.get(program.uri) if program is not None else None
        if document is None or program is None or state is None or not server.settings_for(uri).inlay_hints:
            return []
        # Shapes of an older text would stand on wrong lines.
        if state.stale or state.revision != program.revision:
            return []
        hints = []
        for (where, line), shapes in sorted(state.shapes.items()):
            shown = where == uri and params.range.start.line <= line <= params.range.end.line
            if not shown or line >= len(document.lines):
                continue
            texts = list(dict.fromkeys(_shape(shape) for _, shape in shapes))
            label = " | ".join(texts[:MAX_SHAPES]) + (" | …" if len(texts) > MAX_SHAPES else "")
            end = server.store.position(document, line, len(document.lines[line]))
            tooltip = "The shape of the value of this statement in the last check"
            hints.append(types.InlayHint(end, label, types.InlayHintKind.Type, tooltip=tooltip, padding_left=True))
        return hints


def _shape(shape: list[int]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
