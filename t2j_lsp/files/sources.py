"""Source files on disk: decoded as Python decodes them, written atomically, and never over a user's work.

A file keeps its encoding (byte order mark or PEP 263 line), its line ends and its last line's missing
newline. What t2j wrote is remembered (`written`), so that a second conversion may replace the first one, but
not a file that somebody else wrote or that was edited since; it can be merged into the latter.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from t2j_lsp.contract import LibrarySources, SourceError, T2JError

from .merge import Merged, marked_line, merge
from .projects import is_installed, project_folders
from .written import base_of, has_base, is_written, remember

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
            unencodable = text[error.start : error.end]
            raise T2JError(f"the output holds {unencodable!r}, which {self.encoding} can't encode") from None


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


def encode(text: str) -> bytes:
    """Bytes of Python text, in the encoding that its first lines name. Raises T2JError where that can't be."""
    return SourceFile(text, decode(text.encode("utf-8", "surrogatepass")).encoding).encode(text)


def read_source(path: Path) -> SourceFile:
    """Read and decode a file. Raises SourceError where it can't be read or decoded."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceError((error.strerror or str(error)).lower()) from None
    return decode(data)


def python_files(folder: Path, outside: Path | None = None) -> Iterator[Path]:
    """The ``.py`` and ``.ipynb`` files under a folder, sorted.

    Hidden folders, caches, virtual environments and the folder ``outside`` are left out, and pipes: to read one waits
    for someone who writes.
    """
    for root, folders, names in os.walk(folder):
        walked = Path(root)
        folders[:] = sorted(name for name in folders if not _is_skipped(walked / name, outside))
        paths = (walked / name for name in sorted(names) if name.endswith(SUFFIXES) and not name.startswith("."))
        yield from (path for path in paths if not path.is_fifo())


def _is_skipped(folder: Path, outside: Path | None) -> bool:
    if folder.name.startswith(".") or folder.name in SKIPPED_FOLDERS or (folder / "pyvenv.cfg").exists():
        return True
    return outside is not None and folder.resolve() == outside.resolve()


def converted_path(source: Path, suffix: str) -> Path:
    """Where a file's conversion goes: beside it."""
    return source.with_name(f"{source.stem}{suffix}{source.suffix}")


def source_path(converted: Path, suffix: str) -> Path | None:
    """The file that a conversion was made from, by its name."""
    if not converted.stem.endswith(suffix) or converted.stem == suffix:
        return None
    return converted.with_name(f"{converted.stem.removesuffix(suffix)}{converted.suffix}")


def neighbours(path: Path, libraries: LibrarySources | None = None) -> Callable[[int, str], str | None]:
    """A resolver for ``Options.resolve``: source of the modules that the file at ``path`` imports from its own project.

    What is converted along of ``libraries`` is the project's too.

    Relative imports count from the file's folder. Absolute ones are looked up in the file's folder, in the folder that
    holds its outermost package, and in the project around it and its ``src``.
    """
    folder = path.resolve().parent
    top = folder
    while (top / "__init__.py").exists() and top.parent != top:
        top = top.parent
    project = project_folders(top)
    own = folder.relative_to(top).parts[:1] if is_installed(top) else ()
    along = {new.partition(".")[0] for _, new in libraries.modules} if libraries is not None else set[str]()
    cache: dict[tuple[int, str], str | None] = {}

    def resolve(level: int, name: str) -> str | None:
        key = (level, name)
        if key not in cache:
            cache[key] = find(level, name)
        return cache[key]

    def find(level: int, name: str) -> str | None:
        if level > len(folder.parts):
            return None
        if level == 0 and libraries is not None and name.partition(".")[0] in along:
            return text_of(Path(libraries.folder), name)
        if level == 0 and own and name.split(".")[:1] != list(own):
            return None  # what is installed beside a package isn't its project's
        bases = [folder, *folder.parents][level - 1 : level] if level else list(dict.fromkeys((folder, top, *project)))
        return next((text for base in bases if (text := text_of(base, name)) is not None), None)

    def text_of(base: Path, name: str) -> str | None:
        stem = base.joinpath(*name.split(".")) if name else base
        for candidate in (stem.with_name(stem.name + ".py"), stem / "__init__.py"):
            if candidate.is_file():
                try:
                    return read_source(candidate).text
                except SourceError:
                    return None
        return None

    return resolve


def write_output(path: Path, data: bytes, *, force: bool = False, merging: bool = False) -> Merged | None:
    """Write an output file atomically and remember that t2j wrote it.

    Where a file is in the way that was edited since t2j wrote it, ``merging`` merges the new text into it, and the
    answer is what it came to. Raises T2JError where something is in the way that t2j did not write or that can't be
    merged, unless ``force``; and where the file can't be written.
    """
    refuse_to_write(path, data, force=force, merging=merging)
    path = _followed(path)
    if force or may_replace(path, data):
        write_atomically(path, data)
        remember(path, data)
        return None
    current = decode(path.read_bytes())
    merged = merge_into(path, current.text, decode(data).text)
    write_atomically(path, current.encode(merged.text))
    # The base of the next merge is what was converted: in it, edits are still edits.
    remember(path, data)
    return merged


def refuse_to_write(path: Path, data: bytes, *, force: bool = False, merging: bool = False) -> None:
    """Raises T2JError where something is in the way that t2j did not write, unless it is replaced or merged into."""
    path = _followed(path)
    if force or merging or may_replace(path, data):
        return
    way = "--merge to merge the new conversion into it, or " if has_base(path) else ""
    raise T2JError(f"{path} exists and is not as t2j wrote it; use {way}--force to replace it")


def _followed(path: Path) -> Path:
    """The file that a path leads to."""
    return Path(os.path.realpath(path)) if path.is_file() or not path.exists() else path


def merge_into(path: Path, mine: str, theirs: str) -> Merged:
    """A new text for a path, merged into ``mine``, which was edited since t2j wrote it.

    Raises T2JError, with what to do, where it is not known from what it was edited, where an earlier merge left
    conflicts, and where the result would be no notebook.
    """
    line = marked_line(mine)
    if line is not None:
        raise T2JError(f"{path} has a conflict of an earlier merge at line {line}; resolve it first")
    base = base_of(path, mine.encode("utf-8", "surrogatepass"))
    if base is None:
        raise T2JError(f"{path} exists, and what t2j wrote there is not known, so nothing can be merged into it")
    merged = merge(decode(base).text, mine, theirs)
    if path.suffix == ".ipynb" and not _is_json(merged):
        raise T2JError(f"{path} was edited where the new conversion differs, and a notebook can't hold conflict marks")
    return merged


def _is_json(merged: Merged) -> bool:
    try:
        json.loads(merged.text)
    except ValueError:
        return False
    return not merged.conflicts


def may_replace(path: Path, data: bytes) -> bool:
    """Whether writing ``data`` to ``path`` destroys nothing that t2j didn't write."""
    if not path.is_file():
        return True
    try:
        current = path.read_bytes()
    except OSError:
        return False
    return not current or current == data or is_written(path, current)


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
