"""Which file is whose conversion: by its name, open in the editor or on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from t2j_lsp.files.sources import read_source
from t2j_lsp.lsp.paths import converted_path, source_path, to_path, to_uri

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server


class Pairs:
    """The pairs of PyTorch files and conversions among what is open and on disk."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def source_of(self, uri: str) -> str | None:
        """The URI of the PyTorch file that a document belongs to: its own, or that of the file it came from."""
        path = to_path(uri)
        if path is None or path.suffix != ".py":
            return None
        suffix = self.server.settings_for(uri).suffix
        origin = source_path(path, suffix)
        if origin is not None and (to_uri(origin) in self.server.store.documents or origin.is_file()):
            return to_uri(origin) if to_uri(origin) in self.server.store.documents else self.spelled(origin)
        return uri

    def spelled(self, path: Path) -> str:
        """A path's URI as the client spells it, where it has the file open."""
        for uri in self.server.store.documents:
            if to_path(uri) == path:
                return uri
        return to_uri(path)

    def converted_of(self, source_uri: str) -> tuple[str, Path] | None:
        """The conversion of a source: its URI and path, if it is open or on disk."""
        path = to_path(source_uri)
        if path is None:
            return None
        target = converted_path(path, self.server.settings_for(source_uri).suffix)
        uri = self.spelled(target)
        return (uri, target) if uri in self.server.store.documents or target.is_file() else None

    def text(self, uri: str, path: Path) -> tuple[str, int]:
        """A text and its revision; 0 for one on disk. Raises T2JError where it can't be read."""
        document = self.server.store.document(uri)
        return (document.text, document.revision) if document is not None else (read_source(path).text, 0)
