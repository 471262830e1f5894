"""Shuts a worker in before anything of a user's, or of a framework's, is loaded in it.

Up to four processes. The supervisor, which the checker started, stays outside: it ends everything when the checker is
gone. Below it, in new namespaces, an ``init`` that holds nothing, made here or by bubblewrap: when it ends, the kernel
kills everything in its process namespace. Below that the worker, which gives up its capabilities and then lets Landlock
and a filter of system calls hold once more what the namespaces hold. Each layer is asked for by name, and a worker
that does not get it does not start.

Without namespaces the supervisor is the parent of every process whose own parent ends, and kills its whole tree.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from t2j_lsp.check.process.processes import TAG, kill_tagged, tree
from t2j_lsp.check.workers.view import view_of

from . import bubblewrap, landlock, namespaces, privileges, seccomp
from .folders import Folders, folders_of

LAYERS = ("bubblewrap", "namespace", "landlock", "seccomp")


@dataclass(frozen=True)
class ContainmentRequest:
    """What the checker asks of a worker: which framework, its folders, and the layers that are to hold."""

    kind: str
    tag: str
    scratch: str
    layers: tuple[str, ...]
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    home: str = "/root"
    gpu: bool = False
    inside: bool = False
    """Whether this process already runs in bubblewrap's view."""

    @staticmethod
    def from_json(text: str) -> ContainmentRequest:
        data = json.loads(text)
        lists = {name: tuple(data[name]) for name in ("layers", "readable", "writable")}
        return ContainmentRequest(**{**data, **lists})


def contain(request: ContainmentRequest, start: str) -> Folders:
    """Returns only in the worker; the supervisor and ``init`` end here. Raises OSError where a layer fails."""
    folders = folders_of(request.readable, (request.scratch, *request.writable), request.home, request.gpu)
    if not request.inside:
        _leave_outside(request, folders, start)
    if hasattr(os, "setsid"):
        with contextlib.suppress(PermissionError):  # Bubblewrap has done it.
            os.setsid()
        privileges.limit()
    _shut(request.layers, folders)
    return folders


def _leave_outside(request: ContainmentRequest, folders: Folders, start: str) -> None:
    """Splits the supervisor off, and goes on in the process that is to be the worker."""
    if not hasattr(os, "fork"):
        return
    privileges.adopt_orphans()
    if "bubblewrap" in request.layers:
        program = [sys.executable, "-P", start, json.dumps({**asdict(request), "inside": True})]
        command = bubblewrap.command(view_of(folders), request.scratch, program)
        _split(_supervise)
        os.execv(command[0], command)
    elif "namespace" in request.layers:
        view = view_of(folders)
        namespaces.enter()
        _split(_supervise)
        namespaces.build(view, request.scratch)
        os.chdir(request.scratch)
        _split(_reap)
        if view.gpu:
            namespaces.open_threads()
    else:
        _split(_supervise)


def _shut(layers: tuple[str, ...], folders: Folders) -> None:
    """What a process does to itself, for good."""
    privileges.drop()
    if "landlock" in layers:
        view = "namespace" in layers or "bubblewrap" in layers
        own = ("/dev/shm",) if view else ()
        devices = (*folders.devices, *(landlock.held("/proc/self/task") if folders.gpu else ()))
        landlock.restrict((*folders.readable, "/proc/self"), (*folders.writable, *own), devices)
    if "seccomp" in layers:
        seccomp.install(attributes=not {"namespace", "bubblewrap"} & {*layers}, gpu=folders.gpu)


def _split(watch: Callable[[int], int]) -> None:
    """Forks; the parent watches the child and ends as it ends, the child goes on."""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        privileges.die_with(parent)
        return
    privileges.hide()
    os.close(1)  # So that the checker sees the pipe close when the worker is gone.
    code = os.waitstatus_to_exitcode(watch(child))
    os._exit(128 - code if code < 0 else code)


def _reap(child: int) -> int:
    """The life of ``init``: waits for the worker, and for orphans that the kernel hands to it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # The kernel keeps from it what it has no handler for.
    privileges.drop()
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def _supervise(child: int) -> int:
    """Waits until the child ends or the checker closes its pipe; then everything below this process is killed."""
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(child, signal.SIGKILL))
    poll = select.poll()
    poll.register(0, 0)  # Only whether the other end is closed: the worker reads from it.
    try:
        poll.register(os.pidfd_open(child), select.POLLIN)
        period = None
    except (AttributeError, OSError):
        period = 200
    status: int | None = None
    while status is None:
        pid, reaped = os.waitpid(child, os.WNOHANG)
        if pid:
            status = reaped
        elif any(fd == 0 for fd, _ in poll.poll(period)):
            os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
    _kill_tree()
    kill_tagged(os.environ.get(TAG, ""), but=os.getpid())
    return status


def _kill_tree() -> None:
    """Kills what is left below this process until nothing is: orphans come here."""
    for _ in range(1000):
        left = tree(os.getpid())[1:]
        if not left:
            return
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def probe(both: bool = False) -> list[str]:
    """The layers that this system offers, each tried in a process of its own that ends at once.

    Of the two that make a view of the file system, only one, where not ``both`` are asked for: the maintained tool, if
    it is there and works.
    """
    if not hasattr(os, "fork") or not sys.platform.startswith("linux"):
        return []
    with tempfile.TemporaryDirectory(prefix="t2j-probe-") as scratch:
        folders = folders_of((), (scratch,), os.path.expanduser("~"), False)
        tries: dict[str, Callable[[], None]] = {
            "bubblewrap": lambda: _try_bubblewrap(folders),
            "namespace": lambda: _try_namespace(folders),
            "landlock": lambda: landlock.restrict(("/usr",), (scratch,), ()),
            "seccomp": lambda: seccomp.install(attributes=False, gpu=False),
        }
        missing: list[str] = []
        for name in LAYERS:
            if (both or name != "namespace" or "bubblewrap" not in missing) and _works(tries[name]):
                missing.append(name)
        return missing


def _works(attempt: Callable[[], None]) -> bool:
    child = os.fork()
    if child == 0:
        try:
            attempt()
        except (OSError, subprocess.SubprocessError):
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def _try_bubblewrap(folders: Folders) -> None:
    if bubblewrap.installed() is None:
        raise FileNotFoundError("bwrap")
    command = bubblewrap.command(view_of(folders), folders.writable[0], ["true"])
    run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)
    if run.returncode:
        raise OSError("bwrap does not work here")


def _try_namespace(folders: Folders) -> None:
    view = view_of(folders)
    namespaces.enter()
    child = os.fork()
    if child == 0:
        try:
            namespaces.build(view, folders.writable[0])
            Path("/proc/self/status").read_bytes()
        except OSError:
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise OSError("no view of the file system can be made")
