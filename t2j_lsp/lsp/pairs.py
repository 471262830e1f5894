"""Which file is whose conversion: by its name, open in the editor or on disk.

A notebook goes by its own URI, and so do its cells. Its text is its cells alone, as JSON: outputs are no part of a
program, and nothing becomes stale when a cell is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from t2j_lsp.contract import T2JError
from t2j_lsp.files.sources import SUFFIXES, read_source
from t2j_lsp.lsp.analysis.model import ConversionRefused

from .documents import DocumentStore
from .notebook_file import cells_alone, documents_of_cells, notebook_bytes
from .paths import converted_path, source_path, to_path, to_uri


class Pairs:
    """The pairs of PyTorch files and conversions among what is open and on disk."""

    def __init__(self, store: DocumentStore, suffix_of: Callable[[str], str]) -> None:
        self._store = store
        self._suffix_of = suffix_of
        """What is behind the name of a document's conversion, by the document's settings."""

    def source_of(self, uri: str) -> str | None:
        """The URI of the PyTorch file that a document belongs to: its own, or that of the file it came from."""
        program = self._store.program(uri)
        uri = program.uri if program is not None else uri
        path = to_path(uri)
        if path is None or path.suffix not in SUFFIXES:
            return None
        suffix = self._suffix_of(uri)
        origin = source_path(path, suffix)
        if origin is not None and (self._is_open(to_uri(origin)) or origin.is_file()):
            return to_uri(origin) if self._is_open(to_uri(origin)) else self.spelled(origin)
        return uri

    def _is_open(self, uri: str) -> bool:
        return uri in self._store.documents or uri in self._store.notebooks

    def spelled(self, path: Path) -> str:
        """A path's URI as the client spells it, where it has the file open."""
        for uri in (*self._store.documents, *self._store.notebooks):
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
        return (uri, target) if self._is_open(uri) or target.is_file() else None

    def text(self, uri: str, path: Path) -> tuple[str, int]:
        """A text and its revision; 0 for one on disk. Raises T2JError where it can't be read."""
        notebook = self._store.notebooks.get(uri)
        if notebook is not None:
            try:
                return cells_alone(notebook_bytes(path, notebook)), notebook.revision
            except ConversionRefused as error:
                raise T2JError(str(error)) from None
        document = self._store.document(uri)
        text = document.text if document is not None else read_source(path).text
        revision = document.revision if document is not None else 0
        return cells_alone(text) if path.suffix == ".ipynb" else text, revision

    # --- cells ----------------------------------------------------------------------------------------------------

    def is_notebook(self, uri: str) -> bool:
        """Whether lines of a file are lines of its cells."""
        path = to_path(uri)
        return uri in self._store.notebooks or (path is not None and path.suffix == ".ipynb")

    def cells(self, uri: str) -> dict[int, str]:
        """The documents of a notebook's cells, which are counted from 1; none where the client doesn't show it.

        The notebook's file is read for it.
        """
        notebook, path = self._store.notebooks.get(uri), to_path(uri)
        return documents_of_cells(path, notebook) if notebook is not None and path is not None else {}

    def definition_in_cells(self, uri: str, name: str) -> tuple[str, int] | None:
        """The cell and the line (from 0) that define a class or function, else the first of all; None where closed."""
        notebook = self._store.notebooks.get(uri)
        if notebook is None or not notebook.python_cells:
            return None
        head = definition_head(name)
        for cell in notebook.python_cells:
            for number, line in enumerate(cell.lines):
                if head.match(line):
                    return cell.uri, number
        return notebook.python_cells[0].uri, 0


def definition_head(name: str) -> re.Pattern[str]:
    """What the line looks like that begins the definition of a class or function, by its qualified name."""
    return re.compile(rf"\s*(?:class|(?:async\s+)?def)\s+{re.escape(name.rpartition('.')[2])}\b")
