"""Commands that let checks in the background wait, and go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server


def register(server: Server) -> None:
    @server.command("t2j.pauseChecks")
    def pause(*_: Any) -> dict[str, Any]:
        """Checks in the background wait until they are resumed; those that are asked for run."""
        server.checks.pause()
        return _answer(server)

    @server.command("t2j.resumeChecks")
    def resume(*_: Any) -> dict[str, Any]:
        """Run what waits, and what comes; on battery too, until the machine was plugged in."""
        server.checks.resume()
        return _answer(server)


def _answer(server: Server) -> dict[str, Any]:
    reason = server.checks.pausing.reason
    return {"paused": reason is not None, "reason": reason}
