"""What a worker is made of, how much memory that holds, and how it is ended: the checker's side, on every system.

By psutil where it is installed. On Linux there is always an answer, and for the tree it is the kernel's own list of
children, which costs a thirtieth of looking through all processes and is asked ten times a second. The workers' own
side (``processes``) does without psutil: nothing of the user's packages is loaded by what shuts them in.
"""

from __future__ import annotations

import contextlib
import functools
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import processes
from .processes import TAG

ON_LINUX = Path("/proc/self/task").exists()


def can_watch() -> bool:
    """Whether the processes and the memory of a worker can be watched here."""
    return ON_LINUX or find_spec("psutil") is not None


@functools.cache
def _psutil() -> Any:
    """The library, loaded on first use; None where it is not installed, as beside a server that came with an editor."""
    try:
        import psutil  # type: ignore[import-untyped]
    except ImportError:
        return None
    return psutil


def tree(pid: int) -> list[int]:
    """A process and its descendants."""
    return processes.tree(pid) if ON_LINUX or _psutil() is None else tree_by_psutil(pid)


def tree_by_psutil(pid: int) -> list[int]:
    """A process and its descendants, found among all processes."""
    psutil = _psutil()
    try:
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.Error:
        return [pid]


def resident(pids: list[int]) -> int:
    """Bytes of memory that processes hold; 0 where the system doesn't say."""
    psutil = _psutil()
    if psutil is None:
        return processes.resident(pids)
    total = 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            total += psutil.Process(pid).memory_info().rss
    return total


def kill_tagged(tag: str) -> int:
    """Kills every process with a worker's tag in its environment; gives how many there were."""
    psutil = _psutil()
    if psutil is None:
        return processes.kill_tagged(tag)
    killed = 0
    for _ in range(processes.ROUNDS):
        tagged = [process for process in psutil.process_iter() if _has_tag(process, tag)]
        for process in tagged:
            with contextlib.suppress(psutil.Error):
                process.kill()
                killed += 1
        if not tagged:
            break
    return killed


def _has_tag(process: Any, tag: str) -> bool:
    psutil = _psutil()
    try:
        return bool(process.pid != os.getpid() and process.environ().get(TAG) == tag)
    except (psutil.Error, OSError):
        return False
