"""The same view by bubblewrap, a maintained tool that many systems have. https://github.com/containers/bubblewrap"""

from __future__ import annotations

import os
import shutil
import sys

from t2j_lsp.check.workers.view import SHARED_MEMORY, View

from .folders import DEVICES

_PLACES = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")


def installed() -> str | None:
    """Where the tool is, in a folder of the system's: a program by that name elsewhere is not it."""
    return shutil.which("bwrap", path=os.pathsep.join(_PLACES)) if sys.platform.startswith("linux") else None


def command(view: View, folder: str, program: list[str]) -> list[str]:
    """The command that runs a program in the view, standing in ``folder``."""
    given = [installed() or "bwrap", "--unshare-user-try", "--unshare-ipc", "--unshare-pid", "--unshare-net"]
    given += ["--unshare-uts", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    given += ["--proc", "/proc", "--dev", "/dev", "--size", str(SHARED_MEMORY), "--tmpfs", "/dev/shm"]
    for path, target in view.links:
        given += ["--symlink", target, path]
    for path, writable in view.mounts:
        given += ["--bind-try" if writable else "--ro-bind-try", path, path]
    for path in view.devices:
        if path not in DEVICES:  # Those, the tool makes itself.
            given += ["--dev-bind-try", path, path]
    # Some of the system's settings in /proc belong to root, with or without capabilities. What is not a process's:
    settings = [f"/proc/{name}" for name in os.listdir("/proc") if not name.isdigit()] if view.gpu else []
    for path in settings:
        given += [] if os.path.islink(path) else ["--ro-bind-try", path, path]
    given += ["--dir", "/tmp", *([] if view.gpu else ["--remount-ro", "/proc"])]
    given += ["--remount-ro", "/", "--chdir", folder, "--"]
    return [*given, *program]
