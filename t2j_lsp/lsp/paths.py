"""URIs and paths, and which file is whose conversion."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit


def to_path(uri: str) -> Path | None:
    """The path of a ``file:`` URI; None for others (``untitled:``, ``vscode-notebook-cell:``, ...)."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    path = unquote(parts.path)
    if re.match(r"/[A-Za-z]:", path):
        # A drive letter: clients write /c%3A/, /c:/ and /C:/ for one and the same.
        path = path[1].upper() + path[2:]
    if parts.netloc and parts.netloc != "localhost":
        path = f"//{parts.netloc}{path}"
    return Path(path)


def to_uri(path: Path) -> str:
    """The ``file:`` URI of an absolute path."""
    text = path.as_posix()
    if text.startswith("//"):
        host, _, rest = text[2:].partition("/")
        return f"file://{host}/{quote(rest)}"
    return f"file://{quote(text if text.startswith('/') else '/' + text)}"


def converted_path(source: Path, suffix: str) -> Path:
    """Where a file's conversion goes: beside it."""
    return source.with_name(f"{source.stem}{suffix}{source.suffix}")


def source_path(converted: Path, suffix: str) -> Path | None:
    """The file that a conversion was made from, by its name."""
    if not converted.stem.endswith(suffix) or converted.stem == suffix:
        return None
    return converted.with_name(f"{converted.stem.removesuffix(suffix)}{converted.suffix}")
