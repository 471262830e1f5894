"""``t2j.tellInputs``: puts the comment that gives a class or function inputs above it, for the user to fill in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from t2j_lsp.lsp.analysis.model import ConversionRefused, Hunk
from t2j_lsp.lsp.edits import apply_edit, edit_of

from .actions import RequestFailed
from .lenses import TELL_COMMAND, verdict_of

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server

_COMMENT = re.compile(r"write above it: (# t2j: .*?)(?: \(tried: |$)", re.S)


def register(server: Server) -> None:
    @server.command(TELL_COMMAND)
    async def tell_inputs(*arguments: Any) -> dict[str, Any]:
        """``[uri, name]``: insert the comment that the check suggested, and show it."""
        uri, name = (str(one) for one in (*arguments, "", "")[:2])
        program = server.store.program(uri)
        current = server.service.current(program) if program is not None else None
        suggested = suggestion(verdict_of(server, uri, name))
        if program is None or current is None or suggested is None:
            raise RequestFailed(message=f"no check has asked for the inputs of {name}")
        analysis, lines = current
        definition = next((d for d in analysis.definitions if d.name == name and not d.depth), None)
        line = lines.to_new(definition.line - 1) if definition is not None else None
        if line is None:
            raise RequestFailed(message=f"{name} was edited since its check")
        try:
            edit = edit_of(server, program, [Hunk(line + 1, line, (suggested,))], ())
        except ConversionRefused as error:
            raise RequestFailed(message=str(error)) from None
        answer = await apply_edit(server, "Tell the inputs of a check", edit)
        if answer["applied"] and server.client.show_document:
            where = types.Range(types.Position(line, 0), types.Position(line, len(suggested)))
            params = types.ShowDocumentParams(uri, take_focus=True, selection=where)
            server.spawn(server.protocol.ask(types.WINDOW_SHOW_DOCUMENT, params))
        return answer


def suggestion(verdict: dict[str, Any] | None) -> str | None:
    """The comment that a verdict without inputs suggests."""
    match = _COMMENT.search((verdict or {}).get("reason") or "")
    return match[1].strip() if match is not None else None
