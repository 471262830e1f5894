"""A view of the file system with nothing in it but what a worker needs: a plan, which two engines carry out."""

from __future__ import annotations

import os
from dataclasses import dataclass

from t2j_lsp.check.workers.containment.folders import Folders

SHARED_MEMORY = 1024**3
"""Bytes of a worker's own /dev/shm."""


@dataclass(frozen=True)
class View:
    """What to put into an empty root, in this order: links, then mounts, those above others first."""

    links: tuple[tuple[str, str], ...]
    """Paths and what they link to."""
    mounts: tuple[tuple[str, bool], ...]
    """Real paths to show as they are, and whether they may be written."""
    devices: tuple[str, ...]
    gpu: bool = False
    """Whether a worker may write to its own threads in /proc, as CUDA's driver does: to their names."""


def view_of(folders: Folders) -> View:
    """The view for a worker. /proc, /dev and /dev/shm are its own, and not in the plan."""
    paths = [*(path for path in folders.readable if not _is_own(path)), *folders.writable]
    links: dict[str, str] = {}
    real = {path: _follow(path, links) for path in paths}
    writable = {real[path] for path in folders.writable}
    mounts: list[tuple[str, bool]] = []
    for path in sorted(set(real.values())):
        above = [mounted for mounted, _ in mounts if _is_below(path, (mounted,))]
        if path in writable or not above:
            mounts.append((path, path in writable))
    shown = tuple(path for path, _ in mounts)
    made = tuple((path, target) for path, target in links.items() if not _is_below(path, shown))
    return View(made, tuple(mounts), folders.devices, folders.gpu)


def _follow(path: str, links: dict[str, str]) -> str:
    """The real path, with the symbolic links on the way to it noted in ``links``."""
    todo, at = [part for part in path.split("/") if part][::-1], "/"
    while todo and len(links) < 1000:
        part = todo.pop()
        if part == "..":
            at = os.path.dirname(at)
            continue
        step = os.path.join(at, part)
        if not os.path.islink(step):
            at = step
            continue
        target = os.readlink(step)
        links[step] = target
        todo += [part for part in target.split("/") if part not in ("", ".")][::-1]
        at = "/" if target.startswith("/") else at
    return at


def _is_own(path: str) -> bool:
    """Whether a worker has its own of this. A project may lie in shared memory."""
    return _is_below(path, ("/proc", "/dev")) and not path.startswith("/dev/shm/")


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)
