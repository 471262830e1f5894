"""What t2j wrote to which path, kept in the user's state folder: for each output path, hashes of the last few texts,
and the texts themselves as far as they fit.

The hashes say whether a file may be replaced; the texts are the base of a merge into a file that was edited since.
Some of what stands here was only proposed to an editor, which may have thrown it away, so no single text is taken for
what is in the file: `base_of` picks the one that has most lines in common with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import zlib
from collections import Counter
from pathlib import Path

HISTORY = 8
"""Texts that are remembered for each path."""
MAX_TEXT = 1 << 20
"""Bytes of a text that is still kept."""
MAX_TEXTS = 500
"""Texts that are kept for all paths; the oldest go first."""


def state_folder() -> Path:
    """Where t2j remembers what it did: ``$T2J_STATE``, or the platform's folder for program state."""
    if chosen := os.environ.get("T2J_STATE"):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "t2j"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "t2j"


def digest(data: bytes) -> str:
    """The SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def remember(path: Path, data: bytes) -> None:
    """Note that t2j wrote these bytes to a path, or is about to."""
    new = digest(data)
    # In a read-only home, the next conversion to this path asks for --force, and nothing is lost.
    with contextlib.suppress(OSError):
        hashes = [new, *(h for h in _hashes(path) if h != new)][:HISTORY]
        replace_file(_record(path), "\n".join(hashes).encode("ascii"))
        if len(data) <= MAX_TEXT:
            replace_file(_text(new), zlib.compress(data), MAX_TEXTS)


def is_written(path: Path, data: bytes) -> bool:
    """Whether t2j wrote these bytes to a path."""
    return digest(data) in _hashes(path)


def base_of(path: Path, data: bytes) -> bytes | None:
    """The text that t2j wrote to a path and that ``data``, the present one, comes from; None where none is kept."""
    present = Counter(data.splitlines())
    best: tuple[int, bytes] | None = None
    for one in _hashes(path):
        text = _kept(one)
        if text is not None:
            common = (present & Counter(text.splitlines())).total()
            if best is None or common > best[0]:
                best = (common, text)
    return best[1] if best is not None else None


def has_base(path: Path) -> bool:
    """Whether a text that t2j wrote to a path is kept."""
    return any(_text(one).is_file() for one in _hashes(path))


def _record(path: Path) -> Path:
    return state_folder() / "written" / digest(os.fsencode(path))


def _text(identity: str) -> Path:
    return state_folder() / "texts" / identity


def _hashes(path: Path) -> list[str]:
    try:
        return [line for line in _record(path).read_text(encoding="ascii").split() if len(line) == 64]
    except (OSError, ValueError):
        return []


def _kept(identity: str) -> bytes | None:
    try:
        data = zlib.decompressobj().decompress(_text(identity).read_bytes(), MAX_TEXT)
    except (OSError, zlib.error):
        return None
    # Half a file, or one that somebody edited, is no base.
    return data if digest(data) == identity else None


def replace_file(path: Path, data: bytes, most: int | None = None) -> None:
    """Write a file so that whoever reads it meanwhile sees the old bytes or the new ones.

    ``most`` bounds the number of files in its folder; the oldest go. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    os.replace(temporary, path)
    if most is not None and len(os.listdir(path.parent)) > most:
        _prune(path.parent, most)


def _prune(folder: Path, most: int) -> None:
    with os.scandir(folder) as entries:
        oldest = sorted((entry.stat().st_mtime, entry.path) for entry in entries)
    # Some more than needed, so that not every write has to look at all of them.
    for _, path in oldest[: len(oldest) - most + most // 10]:
        with contextlib.suppress(OSError):
            os.unlink(path)
