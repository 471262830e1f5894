"""What a worker gives up for good before it runs anything of a user's: capabilities, new privileges, resources."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import struct
import sys
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_SECUREBITS, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 28, 36, 38
_CAPABILITY_VERSION = 0x20080522
_NO_ROOT = 0x2F
"""Secure bits: being root gives no capabilities, and that is locked."""
_FILE_LIMIT = 2 * 1024**3
_PROCESS_LIMIT = 8192


def drop() -> None:
    """Gives up every capability, also of programs that this process starts."""
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(_PR_SET_SECUREBITS, _NO_ROOT, 0, 0, 0)
    for capability in range(64):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    libc.capset(struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24))


def hide() -> None:
    """Makes this process one that others of the same user can't trace or look into."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant whose own parent ends: none gets out of its tree."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def limit() -> None:
    """Limits that don't disturb a framework: no core dumps, huge files, fork bombs; first to go without memory."""
    import resource

    for name, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, _FILE_LIMIT),
        (resource.RLIMIT_NPROC, _PROCESS_LIMIT),
    ):
        _, hard = resource.getrlimit(name)
        wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (wanted, wanted))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def die_with(parent: int) -> None:
    """Has the kernel kill this process when its parent ends. ``parent``: who that was when this process was made."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # 0 is a parent outside this process namespace; anything else means that it died before the call above.
        if os.getppid() not in (0, parent):
            os._exit(1)
