"""Starts a command as it would run on another kind of system: as another user, or on one that offers less.

``python -m benchmarks.attack_systems SYSTEM COMMAND...``. What a system lacks, a filter of system calls takes away:
that is also how containers take namespaces away. Where there is none of it, a check runs as an ordinary user.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import stat
import struct
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

USER = 1000
_NEW_MOUNTS, _PRIVATE, _BIND = 0x20000, 1 << 18 | 1 << 14, 1 << 12 | 1 << 14
_NO_NEW_PRIVS, _SECCOMP, _FILTER, _CAPABILITY_DROP = 38, 22, 2, 24
_LOAD, _EQUAL, _ANY_BIT, _RETURN, _ALLOW, _ERROR = 0x20, 0x15, 0x45, 0x06, 0x7FFF0000, 0x00050000
_NEW_NAMESPACES = 0x7E020000
_NUMBERS = {
    "x86_64": {"clone": 56, "prctl": 157, "unshare": 272, "setns": 308, "mount": 165, "seccomp": 317},
    "aarch64": {"clone": 220, "prctl": 167, "unshare": 97, "setns": 268, "mount": 40, "seccomp": 277},
}
_CLONE3, _LANDLOCK = 435, 444


def main() -> None:
    """Becomes the command."""
    system, *command = sys.argv[1:]
    if system in ("user", "none") and os.getuid() == 0:
        _open_folders((sys.base_prefix, sys.prefix, str(Path(__file__).resolve().parents[1])))
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)
    if system == "bare-root":
        _drop_capabilities()
    if system in ("no-namespaces", "none"):
        _take_away(landlock_and_filters=system == "none")
    os.execvp(command[0], command)


def _open_folders(folders: Iterable[str]) -> None:
    """Lets another user reach folders that lie in a closed one, in a view of the file system for this process alone."""
    libc = ctypes.CDLL(None, use_errno=True)

    def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
        texts = [None if text is None else text.encode() for text in (source, target, kind, data)]
        if libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]):
            raise OSError(ctypes.get_errno(), f"{target} can't be mounted")

    closed: dict[str, list[tuple[str, str]]] = {}
    if libc.unshare(_NEW_MOUNTS):
        raise OSError(ctypes.get_errno(), "no view of the file system of its own")
    mount("none", "/", None, _PRIVATE)
    for folder in dict.fromkeys(map(os.path.realpath, folders)):
        above = [str(p) for p in reversed(Path(folder).parents) if not p.stat().st_mode & stat.S_IXOTH]
        if above:
            kept = tempfile.mkdtemp()
            mount(folder, kept, None, _BIND)
            closed.setdefault(above[0], []).append((folder, kept))
    for top, inside in closed.items():
        mount("none", top, "tmpfs", 0, "mode=755")
        for folder, kept in inside:
            os.makedirs(folder)
            mount(kept, folder, None, _BIND)


def _drop_capabilities() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        libc.prctl(_CAPABILITY_DROP, capability, 0, 0, 0)
    if libc.capset(struct.pack("=Ii", 0x20080522, 0), bytes(24)):
        raise OSError(ctypes.get_errno(), "capabilities can't be dropped")


def _take_away(landlock_and_filters: bool) -> None:
    numbers = _NUMBERS[platform.machine()]
    code = [(_LOAD, 0, 0, 0)]

    def refuse(number: int, code_of_error: int) -> None:
        code.extend([(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | code_of_error)])

    for name in ("unshare", "setns", "mount"):
        refuse(numbers[name], errno.EPERM)
    refuse(_CLONE3, errno.ENOSYS)
    code += [(_EQUAL, 0, 4, numbers["clone"]), (_LOAD, 0, 0, 16), (_ANY_BIT, 0, 1, _NEW_NAMESPACES)]
    code += [(_RETURN, 0, 0, _ERROR | errno.EPERM), (_RETURN, 0, 0, _ALLOW)]
    if landlock_and_filters:
        refuse(_LANDLOCK, errno.ENOSYS)
        refuse(numbers["seccomp"], errno.ENOSYS)
        code += [(_EQUAL, 0, 4, numbers["prctl"]), (_LOAD, 0, 0, 16), (_EQUAL, 0, 1, _SECCOMP)]
        code += [(_RETURN, 0, 0, _ERROR | errno.EINVAL), (_RETURN, 0, 0, _ALLOW)]
    program = b"".join(struct.pack("=HBBI", *one) for one in [*code, (_RETURN, 0, 0, _ALLOW)])
    text = ctypes.create_string_buffer(program, len(program))
    given = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_SECCOMP, _FILTER, given, 0, 0):
        raise OSError(ctypes.get_errno(), "no filter of system calls")


if __name__ == "__main__":
    main()
