"""What this system holds of a check's containment: asked of it without starting a check, and said in plain words."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from t2j_lsp.check.program.project import is_too_wide
from t2j_lsp.contract import Containment, Holder

from .compile_cache import project_of
from .watch import can_watch

_START = Path(__file__).parents[1] / "workers" / "start.py"
_NOT_HELD = {
    "files": "native code can change your files",
    "reads": "native code can read your files",
    "network": "native code can use the network and the sockets of other programs",
    "processes": "native code can leave processes running and end others of yours",
    "memory": "memory is not measured",
}
_HOLDERS: dict[str, tuple[Holder, ...]] = {
    "files": ("namespace", "bubblewrap", "landlock"),
    "reads": ("namespace", "bubblewrap", "landlock"),
    "network": ("namespace", "bubblewrap", "seccomp"),
    "processes": ("namespace", "bubblewrap", "seccomp"),
}
"""By what each part is held, the first that there is."""

_WITHOUT_FILTER: dict[str, tuple[tuple[Holder, ...], str]] = {
    "files": (("landlock",), "native code can change permissions and times of your files"),
    "network": (("namespace", "bubblewrap"), "native code can use sockets that lie in the project's folder"),
}
"""What a layer leaves open where no filter of system calls stands beside it."""


def containment_of(layers: Collection[str]) -> Containment:
    """The containment that these layers give."""
    held: dict[str, Holder] = {
        part: next((one for one in holders if one in layers), "python") for part, holders in _HOLDERS.items()
    }
    held["memory"] = "watched" if can_watch() else "none"
    weak = [text for part, text in _NOT_HELD.items() if held[part] in ("python", "none")]
    if "seccomp" not in layers:
        weak += [text for part, (holders, text) in _WITHOUT_FILTER.items() if held[part] in holders]
    return Containment(**held, not_held=tuple(weak))


@functools.cache
def offered(python: str | None = None) -> tuple[str, ...]:
    """The layers that this system offers to an interpreter: tried in a process that ends at once."""
    command = [python or sys.executable, "-I", "-S", str(_START), "probe"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return tuple(json.loads(run.stdout))
    except (OSError, ValueError, subprocess.SubprocessError):
        return ()


def projects(*files: Path) -> list[Path]:
    """The folders of the projects of files, which their code may read; not one that holds more than a project."""
    home = os.path.expanduser("~")
    return [folder for folder in dict.fromkeys(map(project_of, files)) if not is_too_wide(str(folder), home)]


def probe(python: str | None = None) -> Containment:
    """How checks are shut in on this system. Starts no check; takes some ten milliseconds, once."""
    return containment_of(offered(python))
