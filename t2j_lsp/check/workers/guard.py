"""Refuses what a checked program has no business with: processes, the network, files outside its scratch folder.

Python's audit hooks see these wherever the system offers no namespaces, and give a clear reason. They are no wall
against code that sets out to get past them; `contain` and the killing of a worker are what holds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_PROCESSES = (
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.exec",
    "os.system",
    "subprocess.Popen",
    "pty.spawn",
)
_NETWORK = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "urllib.Request")
_CHANGES = (
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.mkdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "shutil.rmtree",
)

_MAX_REFUSED = 20
_refused: dict[str, None] = {}
"""What was refused, in order and each once."""
_active = False
_allowed: tuple[str, ...] = ()


def install(folders: list[str]) -> None:
    """Installs the hook, for good. Files may be written only in ``folders`` and to devices."""
    global _allowed
    _allowed = (*(os.path.realpath(f) for f in folders if f), "/dev", "/proc/self")
    sys.addaudithook(_noting)


@contextmanager
def guarded() -> Iterator[None]:
    """The hook refuses only inside this context: a framework's own import may start processes."""
    global _active
    _active = True
    try:
        yield
    finally:
        _active = False


def refusals() -> list[str]:
    """What was refused since this was asked last, also where the program caught the error."""
    found = list(_refused)
    _refused.clear()
    return found


def _noting(event: str, arguments: tuple[Any, ...]) -> None:
    try:
        _audit(event, arguments)
    except PermissionError as error:
        if len(_refused) < _MAX_REFUSED:
            _refused[str(error)] = None
        raise


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _active:
        return
    if event in _PROCESSES:
        raise PermissionError("a program starts no processes in a check")
    if event in _NETWORK and not _local(event, arguments):
        raise PermissionError("a program has no network in a check")
    if event in ("os.kill", "os.killpg") and arguments[0] not in (0, os.getpid()):
        raise PermissionError("a program sends no signals to others in a check")
    if (
        event == "open"
        and isinstance(arguments[0], str | bytes)
        and _writes(arguments)
        or event in _CHANGES
        and isinstance(arguments[0], str | bytes)
    ):
        _inside(os.fsdecode(arguments[0]))


def _local(event: str, arguments: tuple[Any, ...]) -> bool:
    """Unix sockets stay on this machine."""
    return event in ("socket.connect", "socket.bind", "socket.sendto") and isinstance(arguments[1], str | bytes)


def _writes(arguments: tuple[Any, ...]) -> bool:
    mode, flags = arguments[1], arguments[2]
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _inside(path: str) -> None:
    real = os.path.realpath(path)
    if not any(real == folder or real.startswith(folder + os.sep) for folder in _allowed):
        raise PermissionError(f"a program writes only in its scratch folder in a check, not {path}")
