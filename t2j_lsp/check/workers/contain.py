"""Shuts a worker in: its own process and network namespaces where Linux lets us, limits, and death with its parent.

Three processes: the supervisor, which the checker started and which notices when the checker is gone; below it, in a
new process namespace, an ``init`` that holds nothing; and the worker. When ``init`` ends, the kernel kills everything
in its namespace, however it was started. Without namespaces (another system, or not permitted) the supervisor kills
the worker's process group and every process that carries the worker's tag in its environment.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from pathlib import Path

from t2j_lsp.check.processes import TAG, kill_tagged

_NEW_USER, _NEW_PID, _NEW_NET = 0x10000000, 0x20000000, 0x40000000
_PR_SET_PDEATHSIG = 1
_FILE_LIMIT = 2 * 1024**3
_PROCESS_LIMIT = 8192


def contain() -> dict[str, bool]:
    """Returns only in the worker; says what it is shut in. The supervisor and ``init`` end here."""
    if not hasattr(os, "fork"):
        return {"processes": False, "network": False}
    found = _unshare()
    _split(supervise=True)
    if found["processes"]:
        _split(supervise=False)
    os.setsid()
    _limit()
    return found


def _split(supervise: bool) -> None:
    """Forks; the parent watches the child and ends as it ends, the child goes on."""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _die_with(parent)
        return
    os.close(1)  # So that the checker sees the pipe close when the worker is gone.
    status = _supervise(child) if supervise else _reap(child)
    if supervise:
        kill_tagged(os.environ.get(TAG, ""), but=parent)
    code = os.waitstatus_to_exitcode(status)
    os._exit(128 - code if code < 0 else code)


def _reap(child: int) -> int:
    """Waits for the worker, and for orphans that the kernel hands to ``init``."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def _supervise(child: int) -> int:
    """Waits until the child ends or the checker closes its pipe; then the child is killed."""
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(child, signal.SIGKILL))
    poll = select.poll()
    poll.register(0, 0)  # Only whether the other end is closed: the worker reads from it.
    try:
        poll.register(os.pidfd_open(child), select.POLLIN)
        period = None
    except (AttributeError, OSError):
        period = 200
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        if any(fd == 0 for fd, _ in poll.poll(period)):
            os.kill(child, signal.SIGKILL)
            return os.waitpid(child, 0)[1]


def _unshare() -> dict[str, bool]:
    """Enters new namespaces, as many as the system permits."""
    if not sys.platform.startswith("linux"):
        return {"processes": False, "network": False}
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    extra = 0 if user == 0 else _NEW_USER
    for flags in (_NEW_PID | _NEW_NET, _NEW_NET, _NEW_PID):
        if libc.unshare(flags | extra) == 0:
            if extra:
                _map_user(user, group)
            return {"processes": bool(flags & _NEW_PID), "network": bool(flags & _NEW_NET)}
    return {"processes": False, "network": False}


def _map_user(user: int, group: int) -> None:
    """Keeps the user's own ids inside a new user namespace."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        try:
            Path("/proc/self", name).write_text(text)
        except OSError:
            return


def _die_with(parent: int) -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # 0 is a parent outside this process namespace; anything else means that it died before the call above.
        if os.getppid() not in (0, parent):
            os._exit(1)


def _limit() -> None:
    """Limits that don't disturb a framework: no core dumps, huge files, fork bombs; first to go without memory."""
    import resource

    for name, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, _FILE_LIMIT),
        (resource.RLIMIT_NPROC, _PROCESS_LIMIT),
    ):
        soft, hard = resource.getrlimit(name)
        wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (wanted, wanted))
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        return
