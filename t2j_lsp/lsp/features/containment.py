"""``t2j.containment``: how checks are shut in on this system, before one has run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from t2j_lsp.check.process.containment import probe

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server

COMMAND = "t2j.containment"


def register(server: Server) -> None:
    @server.command(COMMAND)
    async def containment(*_: Any) -> dict[str, Any]:
        """By what each part of a check is held, of the two sides the one that holds less; starts no check."""
        settings = server.settings_for(None)
        # An interpreter that settings name runs in a trusted workspace alone.
        pythons = {settings.torch_python, settings.jax_python} if server.trusted else {""}
        loop = asyncio.get_running_loop()
        missing = [await loop.run_in_executor(None, probe, python or None) for python in sorted(pythons)]
        return max(missing, key=lambda one: len(one.not_held)).to_json()
