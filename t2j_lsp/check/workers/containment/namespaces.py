"""Namespaces of Linux: of users, processes, network and IPC, and a view of the file system in mounts of its own.

A worker sees what its `View` shows, read-only but for its own folders; a fresh /proc; a /dev of harmless devices; and
shared memory of its own. https://man7.org/linux/man-pages/man2/mount_setattr.2.html needs Linux 5.12.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
from pathlib import Path

from t2j_lsp.check.workers.view import SHARED_MEMORY, View

_NEW_NS, _NEW_UTS, _NEW_IPC = 0x20000, 0x4000000, 0x8000000
_NEW_USER, _NEW_PID, _NEW_NET = 0x10000000, 0x20000000, 0x40000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 0x1000, 0x4000, 1 << 18
_DETACH = 2
_THREADS = "/proc/self/task"
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_OLD = "/.old"


def enter() -> None:
    """New namespaces for this process, and for processes those that its children are in. Raises OSError."""
    user, group = os.getuid(), os.getgid()
    apart = _NEW_PID | _NEW_NET | _NEW_IPC | _NEW_UTS
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(apart | _NEW_USER) == 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path("/proc/self", name).write_text(text)
    elif libc.unshare(apart) != 0:  # Root may, where namespaces of users are switched off.
        raise OSError(ctypes.get_errno(), "no namespaces")


def build(view: View, base: str) -> None:
    """Changes to a root with nothing but the view. ``base`` is any folder. Raises OSError.

    This process is the first of its process namespace, as a /proc of that namespace needs.
    """
    _check(ctypes.CDLL(None, use_errno=True).unshare(_NEW_NS), "a namespace of mounts")
    _mount("none", "/", None, _REC | _PRIVATE)
    _mount("tmpfs", base, "tmpfs", _NOSUID | _NODEV, "mode=755,size=16m")
    os.mkdir(base + _OLD)
    number = _PIVOT_ROOT[platform.machine()]
    result = ctypes.CDLL(None, use_errno=True).syscall(number, os.fsencode(base), os.fsencode(base + _OLD))
    _check(result, "a root of its own")
    os.chdir("/")
    _own_proc(view.gpu)
    _own_devices(view.devices)
    for path, target in view.links:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.symlink(target, path)
    for path, writable in view.mounts:
        _show(path, (0 if writable else _RDONLY) | _NOSUID | _NODEV)
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.umount2(os.fsencode(_OLD), _DETACH), "the old root")
    os.rmdir(_OLD)
    os.makedirs("/tmp", exist_ok=True)
    _attributes("/", _RDONLY, recursive=False)


def open_threads() -> None:
    """Lets this process write to its own threads in /proc, where `build` was told so. Raises OSError."""
    _mount(_THREADS, _THREADS, None, _BIND)
    _attributes(_THREADS, 0, recursive=False, cleared=_RDONLY)


def _own_proc(gpu: bool) -> None:
    os.mkdir("/proc")
    # Without the right to change anything in it: some of the system's settings belong to root. What is mounted to be
    # read only stays so in all its parts; a mount that becomes so does not.
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC | (0 if gpu else _RDONLY))
    if gpu:
        _attributes("/proc", _RDONLY, recursive=False)


def _own_devices(devices: tuple[str, ...]) -> None:
    os.mkdir("/dev")
    for path in devices:
        _show(path, _NOSUID | _NOEXEC)
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{target}", f"/dev/{name}")
    os.mkdir("/dev/shm")
    _mount("tmpfs", "/dev/shm", "tmpfs", _NOSUID | _NODEV, f"mode=1777,size={SHARED_MEMORY}")


def _show(path: str, attributes: int) -> None:
    """Mounts what is at a path of the old root at the same path of the new one. What is not there stays out."""
    source = _OLD + path
    if os.path.isdir(source):
        os.makedirs(path, exist_ok=True)
    elif os.path.lexists(source):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.lexists(path):
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    else:
        return
    _mount(source, path, None, _BIND | _REC)
    _attributes(path, attributes, recursive=True)


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    given = None if options is None else options.encode()
    result = ctypes.CDLL(None, use_errno=True).mount(*texts, ctypes.c_ulong(flags), given)
    _check(result, f"a mount at {target}")


def _attributes(path: str, attributes: int, recursive: bool, cleared: int = 0) -> None:
    """Adds attributes to a mount, and to those below it; only those ``cleared`` are taken away."""
    given = struct.pack("=QQQQ", attributes, cleared, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(path), flags, given, len(given)), f"the mount at {path}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
