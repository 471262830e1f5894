"""Source files on disk: decoded as Python decodes them, written atomically, and never over a user's work.

A file keeps its encoding (byte order mark or PEP 263 line), its line ends and its last line's missing
newline. What t2j wrote is remembered by content hash in the user's state folder, one small file for
each output path, so that a second conversion may replace the first one, but not a file that somebody
else wrote or that was edited since.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import sys
import tempfile
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .contract import SourceError, T2JError

SUFFIXES = (".py", ".ipynb")
SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages"})


@dataclass(frozen=True)
class SourceFile:
    """The text of a file, without its byte order mark, and the codec that turns it back into bytes."""

    text: str
    encoding: str = "utf-8"

    def encode(self, text: str) -> bytes:
        """Bytes of ``text`` in this file's encoding, byte order mark included."""
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError as error:
            found = text[error.start : error.end]
            raise T2JError(f"the output holds {found!r}, which {self.encoding} can't encode") from None


def decode(data: bytes) -> SourceFile:
    """Decode Python source the way Python does.

    Raises SourceError where the encoding is unknown or the bytes don't fit it.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise SourceError(error.msg) from None
    try:
        return SourceFile(data.decode(encoding), encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[error.start]
        reason = f"line {line}: byte 0x{byte:02x} is not {encoding}; name the encoding in the file's first line"
        raise SourceError(reason, line) from None


def read_source(path: Path) -> SourceFile:
    """Read and decode a file. Raises SourceError where it can't be read or decoded."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceError((error.strerror or str(error)).lower()) from None
    return decode(data)


def python_files(folder: Path, outside: Path | None = None) -> Iterator[Path]:
    """The ``.py`` and ``.ipynb`` files under a folder, sorted.

    Hidden folders, caches, virtual environments and the folder ``outside`` are left out.
    """
    for root, folders, names in os.walk(folder):
        here = Path(root)
        folders[:] = sorted(name for name in folders if not _is_skipped(here / name, outside))
        yield from (here / name for name in sorted(names) if name.endswith(SUFFIXES) and not name.startswith("."))


def _is_skipped(folder: Path, outside: Path | None) -> bool:
    if folder.name.startswith(".") or folder.name in SKIPPED_FOLDERS or (folder / "pyvenv.cfg").exists():
        return True
    return outside is not None and folder.resolve() == outside.resolve()


def neighbours(path: Path) -> Callable[[int, str], str | None]:
    """A resolver for ``Options.resolve``: source of the modules that the file at ``path`` imports from its own project.

    Relative imports count from the file's folder. Absolute ones are looked up in the file's folder
    and in the folder that holds its outermost package.
    """
    folder = path.resolve().parent
    top = folder
    while (top / "__init__.py").exists() and top.parent != top:
        top = top.parent
    cache: dict[tuple[int, str], str | None] = {}

    def resolve(level: int, name: str) -> str | None:
        key = (level, name)
        if key not in cache:
            cache[key] = find(level, name)
        return cache[key]

    def find(level: int, name: str) -> str | None:
        if level > len(folder.parts):
            return None
        bases = [folder, *folder.parents][level - 1 : level] if level else list(dict.fromkeys((folder, top)))
        for base in bases:
            stem = base.joinpath(*name.split(".")) if name else base
            for candidate in (stem.with_name(stem.name + ".py"), stem / "__init__.py"):
                if candidate.is_file():
                    try:
                        return read_source(candidate).text
                    except SourceError:
                        return None
        return None

    return resolve


def write_output(path: Path, data: bytes, *, force: bool = False) -> None:
    """Write an output file atomically and remember that t2j wrote it.

    Raises T2JError where a file is in the way that t2j did not write, or that was edited since, unless
    ``force``; and where the file can't be written.
    """
    if path.is_file() or not path.exists():
        path = Path(os.path.realpath(path))
    if not force and not may_replace(path, data):
        raise T2JError(f"{path} exists and is not as t2j wrote it; use --force to replace it")
    write_atomically(path, data)
    remember(path, data)


def may_replace(path: Path, data: bytes) -> bool:
    """Whether writing ``data`` to ``path`` destroys nothing that t2j didn't write."""
    if not path.is_file():
        return True
    try:
        current = path.read_bytes()
    except OSError:
        return False
    if not current or current == data:
        return True
    try:
        return _record(path).read_text(encoding="ascii") == _digest(current)
    except (OSError, ValueError):
        return False


def write_atomically(path: Path, data: bytes) -> None:
    """Write through a temporary file in the same folder, so that a reader sees the old bytes or the new ones."""
    if path.exists() and not path.is_file():
        _write_through(path, data)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    except OSError as error:
        raise T2JError(f"can't write {path}: {(error.strerror or str(error)).lower()}") from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise T2JError(f"can't write {path}: {(error.strerror or str(error)).lower()}") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _write_through(path: Path, data: bytes) -> None:
    """Write to a pipe or a device (``/dev/null``), which can't be replaced by a file."""
    try:
        path.write_bytes(data)
    except OSError as error:
        raise T2JError(f"can't write {path}: {(error.strerror or str(error)).lower()}") from None


def _umask() -> int:
    # The only way to read the mask is to set it.
    mask = os.umask(0)
    os.umask(mask)
    return mask


def state_folder() -> Path:
    """Where t2j remembers what it wrote: ``$T2J_STATE``, or the platform's folder for program state."""
    if chosen := os.environ.get("T2J_STATE"):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "t2j"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "t2j"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _record(path: Path) -> Path:
    return state_folder() / "written" / _digest(os.fsencode(path))


def remember(path: Path, data: bytes) -> None:
    """Note that t2j wrote these bytes to a path, so that a later conversion may replace them."""
    record = _record(path)
    # In a read-only home, the next conversion to this path asks for --force, and nothing is lost.
    with contextlib.suppress(OSError):
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(_digest(data), encoding="ascii")
