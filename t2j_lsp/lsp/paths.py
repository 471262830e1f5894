"""URIs and paths, and which file is whose conversion."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from t2j_lsp.files.sources import converted_path as converted_path
from t2j_lsp.files.sources import source_path as source_path


def to_path(uri: str) -> Path | None:
    """The path of a ``file:`` URI; None for others (``untitled:``, ``vscode-notebook-cell:``, ...)."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    # File names that are no UTF-8 keep their bytes on the way there and back.
    path = unquote(parts.path, errors="surrogateescape")
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
        return f"file://{host}/{quote(os.fsencode(rest))}"
    return f"file://{quote(os.fsencode(text if text.startswith('/') else '/' + text))}"
