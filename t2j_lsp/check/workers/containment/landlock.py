"""Landlock: the kernel's rules on files, TCP ports, signals and abstract sockets, which a process sets for itself.

Needs no privilege and no namespace, so it also works inside containers. https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_PR_SET_NO_NEW_PRIVS = 38
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_MAKE_DEVICES = (1 << 6) | (1 << 11)
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL


def version() -> int:
    """The version of Landlock's interface; 0 where the system has none or has it switched off."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(ctypes.CDLL(None).syscall(_CREATE, None, 0, 1)))


def restrict(readable: Iterable[str], writable: Iterable[str], devices: Iterable[str]) -> None:
    """From here on this process reads only what lies in ``readable`` and changes only ``writable``. Raises OSError.

    ``devices`` are read and written. What does not exist is left out.
    """
    abi = version()
    rights = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(abi, 16)) - 1
    network = 0b11 if abi >= 4 else 0
    scoped = 0b11 if abi >= 6 else 0
    attributes = struct.pack("=QQQ", rights, network, scoped)[: 24 if abi >= 6 else 16 if abi >= 4 else 8]
    rules = _call(_CREATE, attributes, len(attributes), 0)
    try:
        for path in readable:
            _allow(rules, path, _READ)
        for path in writable:
            _allow(rules, path, rights & ~_MAKE_DEVICES & ~_IOCTL)
        for path in devices:
            _allow(rules, path, rights & (_READ | _WRITE_FILE | _TRUNCATE | _IOCTL))
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _call(_RESTRICT, rules, 0)
    finally:
        os.close(rules)


def held(path: str) -> tuple[str]:
    """A folder in /proc, kept open from here on: a rule is on what stands for it in memory, which the kernel makes anew
    where nobody holds it."""
    os.open(path, os.O_PATH | os.O_CLOEXEC)
    return (path,)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(file).st_mode):
            rights &= _OF_FILES
        _call(_ADD, rules, _PATH_BENEATH, struct.pack("=Qi", rights, file), 0)
    finally:
        os.close(file)


def _call(number: int, *arguments: int | bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments]
    result = int(libc.syscall(ctypes.c_long(number), *given))
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"Landlock: {os.strerror(errno)}")
    return result
