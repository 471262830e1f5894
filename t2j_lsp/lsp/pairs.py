"""Which file is whose conversion: by its name, open in the editor or on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from t2j_lsp.files.sources import read_source

from .documents import DocumentStore
from .paths import converted_path, source_path, to_path, to_uri


class Pairs:
    """The pairs of PyTorch files and conversions among what is open and on disk."""

    def __init__(self, store: DocumentStore, suffix_of: Callable[[str], str]) -> None:
        self._store = store
        self._suffix_of = suffix_of
        """What is behind the name of a document's conversion, by the document's settings."""

    def source_of(self, uri: str) -> str | None:
        """The URI of the PyTorch file that a document belongs to: its own, or that of the file it came from."""
        path = to_path(uri)
        if path is None or path.suffix != ".py":
            return None
        suffix = self._suffix_of(uri)
        origin = source_path(path, suffix)
        if origin is not None and (to_uri(origin) in self._store.documents or origin.is_file()):
            return to_uri(origin) if to_uri(origin) in self._store.documents else self.spelled(origin)
        return uri

    def spelled(self, path: Path) -> str:
        """A path's URI as the client spells it, where it has the file open."""
        for uri in self._store.documents:
            if to_path(uri) == path:
                return uri
        return to_uri(path)

    def converted_of(self, source_uri: str) -> tuple[str, Path] | None:
        """The conversion of a source: its URI and path, if it is open or on disk."""
        path = to_path(source_uri)
        if path is None:
            return None
        target = converted_path(path, self._suffix_of(source_uri))
        uri = self.spelled(target)
        return (uri, target) if uri in self._store.documents or target.is_file() else None

    def text(self, uri: str, path: Path) -> tuple[str, int]:
        """A text and its revision; 0 for one on disk. Raises T2JError where it can't be read."""
        document = self._store.document(uri)
        return (document.text, document.revision) if document is not None else (read_source(path).text, 0)
