"""The files that a program wrote into its copy of the folder: texts, arrays that numpy reads, and checkpoints."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

_TEXTS = (".txt", ".csv", ".json", ".tsv", ".log", ".jsonl")
_ARRAYS = (".npy", ".npz")
_CHECKPOINTS = (".pt", ".pth", ".tar", ".ckpt", ".bin", ".pkl", ".model")
_LARGEST = 16 * 1024**2


def listed(folder: str) -> dict[str, tuple[int, int]]:
    """The files below a folder, with the time of their last change and their size."""
    entries = {}
    for path in Path(folder).rglob("*"):
        if path.is_file() and not path.is_symlink():
            state = path.stat()
            entries[path.relative_to(folder).as_posix()] = (state.st_mtime_ns, state.st_size)
    return entries


def written(
    folder: str, before: dict[str, tuple[int, int]], checkpoint: Callable[[str], Any] | None = None
) -> dict[str, Any]:
    """What the files hold that are new or changed: a text, or the arrays of a file of numpy's or of a checkpoint.

    ``checkpoint`` reads a checkpoint, with numpy's arrays in it; whatever it raises, the file is none of this side's.
    """
    contents: dict[str, Any] = {}
    for name, state in sorted(listed(folder).items()):
        path = os.path.join(folder, name)
        if before.get(name) == state or state[1] > _LARGEST:
            continue
        if name.endswith(_TEXTS):
            contents[name] = Path(path).read_text(errors="replace")
        elif name.endswith(_ARRAYS):
            try:
                held = np.load(path, allow_pickle=False)
            except (OSError, ValueError):
                continue
            arrays = {"": held} if isinstance(held, np.ndarray) else {f"[{key}]": held[key] for key in held.files}
            contents |= {f"{name}{key}": array for key, array in arrays.items() if array.dtype.kind in "fiub"}
        elif name.endswith(_CHECKPOINTS) and checkpoint is not None:
            try:
                contents |= {f"{name}{key}": array for key, array in _held(checkpoint(path))}
            except Exception:  # noqa: BLE001 - the user's own classes are unpickled, which may do anything
                continue
    return contents


def _held(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """The numbers and arrays of nested dicts and lists, with the keys that lead there."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _held(part, f"{key}[{name}]")
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from _held(part, f"{key}[{index}]")
    elif isinstance(value, int | float | np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind in "fiub":
            yield key, array
