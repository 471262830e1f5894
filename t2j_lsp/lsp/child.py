"""The server's own processes: how they are started."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

LIMIT = 64 * 1024
"""Bytes of a line that is read, where nothing else is said."""


async def start_child(module: str, limit: int = LIMIT, python: str = sys.executable) -> asyncio.subprocess.Process:
    """A process that runs a module of ours and talks over its standard streams. It leads a group of its own."""
    return await asyncio.create_subprocess_exec(
        python,
        "-P",
        "-m",
        module,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=tempfile.gettempdir(),
        env=_environment(),
        start_new_session=True,
        limit=limit,
    )


def _environment() -> dict[str, str]:
    """What the server has, with this very package to import, and nothing from where the server stands."""
    root = str(Path(__file__).resolve().parents[2])
    given = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and os.path.isabs(p)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys([root, *given]))}
