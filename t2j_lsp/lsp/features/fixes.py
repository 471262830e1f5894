"""``t2j.fixedBugs``: fixed bugs by their ids; and the line with which a hover says that some are like a place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from t2j_lsp.contract import T2JError
from t2j_lsp.fixes.offers import counted

from .actions import RequestFailed
from .hover_text import command_link

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server

SHOW_COMMAND = "t2j.showFixes"
"""The client's own command, in clients that follow links to commands: ``[ids]`` shows fixed bugs."""


def register(server: Server) -> None:
    @server.command("t2j.fixedBugs")
    async def fixed_bugs(*arguments: Any) -> dict[str, Any]:
        """``[ids]``: fixed bugs, faulty and fixed code with what was wrong, as data and as one text."""
        ids = (*arguments, None)[0]
        if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
            raise RequestFailed(message="t2j.fixedBugs takes a list of ids")
        try:
            answer: dict[str, Any] = await server.similar.ask("show", ids=ids)
        except T2JError as error:
            raise RequestFailed(message=str(error)) from None
        return answer


def offer(server: Server, similar: list[dict[str, Any]]) -> tuple[str, str | None]:
    """The line of a hover that says that fixed bugs are like a place, and the link behind it where links work."""
    ids = [one["id"] for one in similar]
    if server.client.command_links:
        return counted(len(similar)), command_link(SHOW_COMMAND, [ids])
    return f"{counted(len(similar))}: t2j fixes --show {' or '.join(ids)}", None
