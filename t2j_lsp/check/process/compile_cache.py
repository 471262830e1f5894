"""Compiled XLA programs, kept between runs: one folder for each project, and all of them below a limit.

What lies in such a folder is native code that a worker runs, so a program may write to its own project's folder only:
what it plants there, it plants for itself. Folders are made and emptied here, on the checker's side, since a worker
may write nothing above its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from pathlib import Path

LIMIT = 512 * 1024**2
"""Bytes of all projects together; ``T2J_CACHE_LIMIT`` gives another number of megabytes."""
_UNUSED = 24 * 3600.0
"""Seconds after which an empty folder goes: before, a worker may be about to fill it."""
_ROOTS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")


def cache_folder() -> Path:
    """Where t2j keeps what it can make anew: ``T2J_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("T2J_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/.cache")
    return Path(chosen) if chosen else Path(base) / "t2j"


def project_of(file: Path) -> Path:
    """The project of a file: the innermost folder above it that looks like one, else the file's own folder."""
    folder = file.resolve().parent
    home = Path(os.path.expanduser("~"))
    for one in (folder, *folder.parents):
        if one != home and any((one / name).exists() for name in _ROOTS):
            return one
    return folder


def open_cache(project: Path) -> Path | None:
    """Makes the folder for a project's programs; None where there can be none. Of all others, the oldest go."""
    folder = _programs() / hashlib.sha256(os.fsencode(project.resolve())).hexdigest()[:32]
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        trim()
        return folder if folder.is_dir() and not folder.is_symlink() else None
    return None


def _programs() -> Path:
    return cache_folder() / "xla"


def _limit() -> int:
    try:
        return int(os.environ["T2J_CACHE_LIMIT"]) * 1024**2
    except (KeyError, ValueError):
        return LIMIT


def trim() -> int:
    """Removes the programs used longest ago until all projects' are below the limit together; gives the bytes left.

    A worker may be writing beside, and a program may have left anything: links are never followed.
    """
    limit, projects = _limit(), _entries(_programs())
    files: list[tuple[float, int, str]] = []
    for project in projects:
        for one in _entries(project.path) if project.is_dir(follow_symlinks=False) else ():
            with contextlib.suppress(OSError):
                if one.is_dir(follow_symlinks=False):
                    shutil.rmtree(one.path, ignore_errors=True)  # JAX makes none.
                    continue
                status = one.stat(follow_symlinks=False)
                files.append((max(status.st_atime, status.st_mtime), status.st_size, one.path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= limit:
            break
        with contextlib.suppress(OSError):
            os.unlink(path)
            total -= size
    for project in projects:
        with contextlib.suppress(OSError):
            if time.time() - project.stat(follow_symlinks=False).st_mtime > _UNUSED:
                os.rmdir(project.path)  # Fails, as it should, where something is in it.
    return total


def _entries(folder: Path | str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
