"""Finds and ends the processes of a worker on Linux, by the standard library: for what shuts workers in."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

TAG = "T2J_WORKER"
"""The environment variable by which a worker's processes are found, however they were started."""
DEVICE = "T2J_DEVICE"
"""The variable that tells a worker where to run: ``cpu`` or ``gpu``."""
GPU_SHARE = 0.45
"""Of a card's memory, what either framework may take: neither can starve the other."""
ROUNDS = 50
"""So often it is looked for processes that were started while others were killed."""


def kill_tagged(tag: str, but: int = 0) -> int:
    """Kills every process with a worker's tag in its environment, but one; gives how many there were."""
    wanted = f"{TAG}={tag}".encode()
    killed = 0
    for _ in range(ROUNDS):
        tagged = [pid for pid in _processes() if pid != but and wanted in _environment(pid)]
        for pid in tagged:
            try:
                os.kill(pid, signal.SIGKILL)
                killed += 1
            except OSError:
                continue
        if not tagged:
            break
    return killed


def tree(pid: int) -> list[int]:
    """A process and its descendants."""
    members, todo = [], [pid]
    while todo:
        item = todo.pop()
        members.append(item)
        # A process may end while it is looked at.
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{item}/task"):
                with contextlib.suppress(OSError):
                    todo += map(int, Path(f"/proc/{item}/task/{thread}/children").read_text().split())
    return members


def resident(pids: list[int]) -> int:
    """Bytes of memory that processes hold; 0 where the system doesn't say."""
    total = 0
    for pid in pids:
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError, ValueError):
            continue
    return total


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
