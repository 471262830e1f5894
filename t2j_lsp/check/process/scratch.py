"""Scratch folders of workers: made under a lock that their owner holds, and removed at the next start if it was killed.

Inside a folder of the checker's, which no program may write to, lie the lock and the folder that is a worker's own.
The kernel lets go of the lock when the owner is gone, however it ended and in whatever container it ran.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO

_PREFIX, _LOCK = "t2j-check-", "in-use"
_swept = threading.Event()


class Scratch:
    """A new scratch folder, ``path``, until `remove`."""

    def __init__(self, kind: str) -> None:
        if not _swept.is_set():
            _swept.set()
            remove_abandoned()
        self._outer = tempfile.mkdtemp(prefix=_PREFIX)
        self._lock: IO[bytes] | None = open(os.path.join(self._outer, "new"), "wb")  # noqa: SIM115 - held till the end
        _lock(self._lock)
        # Under its name a lock is always held by someone, or its owner is gone.
        if sys.platform != "win32":
            os.rename(os.path.join(self._outer, "new"), os.path.join(self._outer, _LOCK))
        self.path = os.path.join(self._outer, kind)
        os.mkdir(self.path, 0o700)

    def remove(self) -> None:
        """Removes the folder with all that a program left in it."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        _remove(self._outer)


def remove_abandoned() -> list[str]:
    """Removes scratch folders of this user whose owner is gone; gives their paths."""
    removed = []
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and (not hasattr(os, "getuid") or status.st_uid == os.getuid()):
                if _is_abandoned(folder):
                    _remove(str(folder))
                    removed.append(str(folder))
    return removed


def _is_abandoned(folder: Path) -> bool:
    """Whether nobody holds the lock of a folder. One without a lock is just being made."""
    if sys.platform == "win32":
        (folder / "new").unlink()  # Refused while it is open.
        return True
    import fcntl

    with open(folder / _LOCK, "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _lock(file: IO[bytes]) -> None:
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)


def _remove(folder: str) -> None:
    """Removes a folder, also where a program took the right to look into parts of it, or nested thousands."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        for inside, names, _ in os.walk(folder):
            for path in (os.path.join(inside, name) for name in names):
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder) and os.name == "posix":
        subprocess.run(["rm", "-rf", "--", folder], stderr=subprocess.DEVNULL, check=False)
