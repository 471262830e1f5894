"""Where what a check reports stands in the client's documents: in cells, where a file of a pair is a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2j_lsp.lsp.pairs import Pairs
from t2j_lsp.lsp.paths import to_path, to_uri

Reported = dict[str, Any] | None
"""A `Location` in its JSON form."""


@dataclass(frozen=True)
class DocumentLine:
    """A line (from 0) of a document. ``named`` is what a message calls it, by file, cell and line."""

    uri: str
    line: int | None
    named: str


@dataclass(frozen=True)
class PairPlaces:
    """The documents of a pair. ``converted`` None: its conversion is no file."""

    pairs: Pairs
    source: str
    converted: str | None

    def torch(self, location: Reported, name: str) -> DocumentLine:
        """A line of PyTorch, which may be one of a file that the source imports; the definition of ``name`` without."""
        path = to_path(self.source)
        if location is not None and path is not None and Path(location["file"]) != path.resolve():
            uri = to_uri(Path(location["file"]))
            return DocumentLine(uri, location["line"] - 1, _named(uri, location))
        place = self._place(self.source, location, name)
        return place if place is not None else DocumentLine(self.source, None, _named(self.source, location))

    def jax(self, location: Reported, name: str) -> DocumentLine | None:
        """A line of the conversion; None where it is a notebook that the client doesn't show."""
        return self._place(self.converted, location, name) if self.converted is not None else None

    def named(self, location: Reported) -> str:
        """What a message calls a line of the conversion."""
        return _named(self.converted or self.source, location)

    def _place(self, uri: str, location: Reported, name: str) -> DocumentLine | None:
        named = _named(uri, location)
        if not self.pairs.is_notebook(uri):
            return DocumentLine(uri, location["line"] - 1 if location is not None else None, named)
        if location is None:
            place = self.pairs.definition_in_cells(uri, name)
            return DocumentLine(*place, named) if place is not None else None
        cell = self.pairs.cells(uri).get(location.get("cell") or 0)
        return DocumentLine(cell, location["line"] - 1, named) if cell is not None else None


def _named(uri: str, location: Reported) -> str:
    """A place as a message names it: ``net.py, line 12`` or ``net.ipynb, cell 3, line 2``."""
    name = (to_path(uri) or Path(uri)).name
    if location is None:
        return name
    cell = location.get("cell")
    return f"{name}, {f'cell {cell}, ' if cell is not None else ''}line {location['line']}"
