"""The files that a program wrote into its copy of the folder: texts, and arrays that numpy reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

_TEXTS = (".txt", ".csv", ".json", ".tsv", ".log", ".jsonl")
_ARRAYS = (".npy", ".npz")
_LARGEST = 16 * 1024**2


def listed(folder: str) -> dict[str, tuple[int, int]]:
    """The files below a folder, with the time of their last change and their size."""
    found = {}
    for path in Path(folder).rglob("*"):
        if path.is_file() and not path.is_symlink():
            state = path.stat()
            found[path.relative_to(folder).as_posix()] = (state.st_mtime_ns, state.st_size)
    return found


def written(folder: str, before: dict[str, tuple[int, int]]) -> dict[str, Any]:
    """What the files hold that are new or changed: a text, or the arrays of a file of numpy's."""
    found: dict[str, Any] = {}
    for name, state in sorted(listed(folder).items()):
        path = os.path.join(folder, name)
        if before.get(name) == state or state[1] > _LARGEST:
            continue
        if name.endswith(_TEXTS):
            found[name] = Path(path).read_text(errors="replace")
        elif name.endswith(_ARRAYS):
            try:
                held = np.load(path, allow_pickle=False)
            except (OSError, ValueError):
                continue
            arrays = {"": held} if isinstance(held, np.ndarray) else {f"[{key}]": held[key] for key in held.files}
            found |= {f"{name}{key}": array for key, array in arrays.items() if array.dtype.kind in "fiub"}
    return found
