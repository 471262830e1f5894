"""What stands where a conversion goes: nothing, an earlier conversion, or one that was edited since.

An open buffer counts, and not the file under it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from t2j_lsp.contract import T2JError
from t2j_lsp.files.merge import marked_line
from t2j_lsp.files.sources import read_source
from t2j_lsp.files.written import has_base, is_written

from .documents import Document
from .paths import converted_path, to_path, to_uri
from .session import Session

UNTRUSTED = "the workspace is not trusted, and a check runs its code"
UNSAVED_NOTEBOOK = "save the notebook first: its conversion goes beside it"


@dataclass(frozen=True)
class Standing:
    """What stands at a path. ``text`` None: no file and no buffer."""

    path: Path
    text: str | None = None
    opened: Document | None = None
    revision: int = 0
    """The open document's revision when this was looked at."""
    edited: bool = False
    """Whether writing over it would destroy what somebody wrote: the new conversion is merged into it."""
    problem: str | None = None
    """Why nothing can be written there."""

    @property
    def exists(self) -> bool:
        return self.text is not None


def target_of(session: Session, uri: str) -> Path | None:
    """Where the conversion of a document goes; None for buffers that are no file."""
    path = to_path(uri)
    return converted_path(path, session.settings_for(uri).suffix) if path is not None else None


def standing_at(session: Session, target: Path) -> Standing:
    """What stands at a path now."""
    document = session.store.document(to_uri(target))
    if document is not None:
        text, revision = document.text, document.revision
    elif not target.exists():
        return Standing(target)
    else:
        try:
            text, revision = read_source(target).text, 0
        except T2JError as error:
            return Standing(target, "", problem=f"{target.name} exists and can't be read: {error}")
    path = real(target)
    if not text.strip() or is_written(path, text.encode("utf-8", "surrogatepass")) or _on_disk_as_written(path, text):
        return Standing(target, text, document, revision)
    problem = None
    line = marked_line(text)
    if line is not None:
        problem = f"{target.name} has a conflict of an earlier merge at line {line}; resolve it to convert again"
    elif not has_base(path):
        problem = f"{target.name} exists and t2j does not know it; rename it, or delete it, to convert again"
    return Standing(target, text, document, revision, True, problem)


def _on_disk_as_written(path: Path, text: str) -> bool:
    """Whether a text is that of the file, and the file is as t2j wrote it, in whatever encoding."""
    try:
        return is_written(path, path.read_bytes()) and is_saved(path, text)
    except OSError:
        return False


def is_saved(path: Path, text: str) -> bool:
    """Whether a file has this very text."""
    try:
        return read_source(path).text == text
    except T2JError:
        return False


def real(target: Path) -> Path:
    """The path under which it is remembered what t2j wrote."""
    return Path(os.path.realpath(target))
