"""The command ``t2j.convertAndCheck``: a file is converted beside its source, and both are run side by side."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from t2j_lsp.contract import T2JError
from t2j_lsp.files.sources import SUFFIXES
from t2j_lsp.lsp.notebook_file import cells_alone
from t2j_lsp.lsp.paths import to_path
from t2j_lsp.lsp.targets import UNTRUSTED, target_of

from .actions import RequestFailed
from .conversions import convert_document

if TYPE_CHECKING:
    from t2j_lsp.lsp.convert import OfferedConversion
    from t2j_lsp.lsp.server import Server

ARRIVAL = 10.0
"""Seconds that a client may take to tell what it has written."""
_LOOK = 0.05


def register(server: Server) -> None:
    @server.command("t2j.convertAndCheck")
    async def convert_and_check(*arguments: Any) -> dict[str, Any]:
        """``[uri, confirmed?]``: ``t2j.convertFile``, then ``t2j.check``; ``checked`` is the answer of the second."""
        uri, confirmed = (*arguments, None, None)[:2]
        reason = why_not(server, str(uri))
        if reason is not None:
            raise RequestFailed(message=reason)
        conversion, answer = await convert_document(server, str(uri), confirmed is True)
        if not answer.get("applied"):
            return {**answer, "checked": None}
        if conversion.conflicts:
            return {**answer, "checked": None, "reason": "the conflicts that are marked in it come first"}
        await _arrived(server, conversion)
        try:
            await server.checks.check(conversion.uri)
        except T2JError as error:
            raise RequestFailed(message=str(error)) from None
        source = server.pairs.source_of(conversion.uri) or conversion.uri
        return {**answer, "checked": server.checks.summary(source)}


def why_not(server: Server, uri: str) -> str | None:
    """Why a document can't be converted and checked; None where it can."""
    path = to_path(uri)
    if path is None or path.suffix not in SUFFIXES or target_of(server, uri) is None:
        return "only .py files and notebooks are checked"
    if not server.trusted:
        return UNTRUSTED
    return None


async def _arrived(server: Server, conversion: OfferedConversion) -> None:
    """Waits until what the client has written is on disk, or in a document that it has told of."""
    loop = asyncio.get_running_loop()
    end = loop.time() + ARRIVAL
    expected = cells_alone(conversion.code) if server.pairs.is_notebook(conversion.uri) else conversion.code
    while loop.time() < end:
        pair = server.pairs.converted_of(conversion.uri)
        try:
            if pair is not None and server.pairs.text(*pair)[0] == expected:
                return
        except T2JError:
            pass  # It is being written.
        await asyncio.sleep(_LOOK)
