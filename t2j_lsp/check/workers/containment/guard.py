"""Says in plain words what a check refuses: processes, the network, changing files elsewhere, reading a user's own.

Python's audit hooks see what Python code asks for, with names and paths. They are no wall against code that sets out to
get past them: what holds is the system, as `contain` asks it to. Where that offers nothing, they are all there is.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .folders import Folders

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
_NETWORK = (
    "socket.__new__",
    "socket.connect",
    "socket.bind",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.sendto",
    "socket.sendmsg",
    "urllib.Request",
)
_CHANGES: dict[str, tuple[tuple[int, int | None], ...]] = {
    "os.remove": ((0, 1),),
    "os.rmdir": ((0, 1),),
    "os.mkdir": ((0, 2),),
    "os.rename": ((0, 2), (1, 3)),
    "os.link": ((0, 2), (1, 3)),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),),
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.utime": ((0, 3),),
    "os.setxattr": ((0, None),),
    "os.removexattr": ((0, None),),
    "shutil.rmtree": ((0, 1),),
    "sqlite3.connect": ((0, None),),
}
"""For each event, which of its arguments are paths that change, and which are the folders that these start from."""
_LISTS = ("os.listdir", "os.scandir")
_ANYONES = ("/usr", "/lib", "/bin", "/sbin", "/etc", "/proc", "/sys", "/dev", "/opt", "/var", "/run", "/nix", "/gnu")
"""Where libraries look for what may be there: they get the system's own answer."""
_PLACES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/shm")
_PROCESS = re.compile(r"/proc/(\d+)/")
_UNIX_SOCKETS = 1

_MAX_REFUSED = 20
_refused: dict[str, None] = {}
"""What was refused, in order and each once."""
_active = False
_writable: tuple[str, ...] = ()
_readable: tuple[str, ...] = ()
_private = "/"
"""What programs read only as far as it is readable: everything, or the home directory where systems are too various."""


def install(folders: Folders) -> None:
    """Installs the hook, for good."""
    global _writable, _readable, _private
    _writable = (*(os.path.realpath(path) for path in folders.writable), *_PLACES)
    _readable = tuple({os.path.realpath(path) for path in folders.readable})
    _private = "/" if sys.platform.startswith("linux") else os.path.realpath(folders.home)
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


def rules() -> tuple[Any, ...]:
    """What the hook goes by, to see whether a program changed it."""
    return (_PROCESSES, _NETWORK, *_CHANGES, _ANYONES, _PLACES, _writable, _readable, _private)


def refusals() -> list[str]:
    """What was refused since this was asked last, also where the program caught the error."""
    refused = list(_refused)
    _refused.clear()
    return refused


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
    if event in _NETWORK and not (event == "socket.__new__" and arguments[1] == _UNIX_SOCKETS):
        raise PermissionError("a program has no network in a check")
    if event in ("os.kill", "os.killpg") and arguments[0] not in (0, os.getpid()):
        raise PermissionError("a program sends no signals to others in a check")
    if event == "open":
        (_may_change if _writes(arguments) else _may_read)(arguments[0])
    elif event in _CHANGES:
        for path, folder in _CHANGES[event]:
            if path < len(arguments):
                start = arguments[folder] if folder is not None and folder < len(arguments) else None
                _may_change(arguments[path], start)
    elif event in _LISTS:
        _may_read(arguments[0])


def _writes(arguments: tuple[Any, ...]) -> bool:
    mode, flags = arguments[1], arguments[2]
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))


def _may_change(path: Any, folder: Any = None) -> None:
    real = _real(path, folder)
    if real is not None and not _is_below(real, _writable):
        raise PermissionError(f"a program writes only in its scratch folder in a check, not {os.fsdecode(path)}")


def _may_read(path: Any) -> None:
    real = _real(path)
    if real is not None and (other := _PROCESS.match(real)) and int(other[1]) != os.getpid():
        raise PermissionError(f"a program reads nothing of other processes in a check, not {os.fsdecode(path)}")
    if real is None or not _is_below(real, (_private,)) or _is_below(real, (*_readable, *_writable, *_ANYONES)):
        return
    raise PermissionError(
        f"a program reads only its project in a check, not {os.fsdecode(path)}; "
        "name the folder with --readable, in an editor in the setting t2j.check.readable"
    )


def _real(path: Any, folder: Any = None) -> str | None:
    """The real path; None where it is no path but an open file, or a database in memory."""
    if hasattr(path, "__fspath__"):
        path = path.__fspath__()
    if not isinstance(path, str | bytes) or path in ("", ":memory:", b":memory:"):
        return None
    text = os.fsdecode(path).removeprefix("file:").partition("?")[0] if path[:5] == "file:" else os.fsdecode(path)
    if isinstance(folder, int) and folder >= 0:
        text = os.path.join(f"/proc/self/fd/{folder}", text)
    return os.path.realpath(text)


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)
