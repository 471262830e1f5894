"""The open texts: documents, notebooks and their cells, kept in step with the client by incremental edits."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lsprotocol import types

from t2j_lsp.files.notebook import python_lines

from .positions import Encoding, content, split_lines, to_character, to_column

_revisions = itertools.count(1)


class Document:
    """One text. ``version`` is the client's; ``revision`` grows with every change of any document and never comes back.

    A document is also the simplest *program*: what is analysed as a whole, with lines that have a place in a document.
    """

    def __init__(self, uri: str, text: str, version: int | None, language: str = "python") -> None:
        self.uri = uri
        self.version = version
        self.language = language
        self.lines = split_lines(text)
        self.revision = next(_revisions)

    @property
    def text(self) -> str:
        return "".join(self.lines)

    @property
    def is_notebook(self) -> bool:
        return False

    def change(self, changes: Iterable[Any], version: int | None, encoding: Encoding) -> None:
        """Apply content changes, each to the text that the one before it left."""
        for one in changes:
            if getattr(one, "range", None) is None:
                self.lines = split_lines(one.text)
            else:
                self._splice(one.range, one.text, encoding)
        self.version = version
        self.revision = next(_revisions)

    def _splice(self, where: types.Range, text: str, encoding: Encoding) -> None:
        first, before = self._index(where.start, encoding)
        last, after = max((first, before), self._index(where.end, encoding))
        head = self.lines[first][:before]
        if not head and first and self.lines[first - 1].endswith("\r"):
            # A "\n" put behind a "\r" makes one line end of the two.
            first -= 1
            head = self.lines[first]
        new = split_lines(head + text + self.lines[last][after:])
        if last + 1 < len(self.lines) and not new[-1]:
            new.pop()
        self.lines[first : last + 1] = new

    def _index(self, position: types.Position, encoding: Encoding) -> tuple[int, int]:
        """The line and column of a client's position; the end of the text where it is beyond it."""
        if position.line >= len(self.lines):
            return len(self.lines) - 1, len(self.lines[-1])
        line = max(position.line, 0)
        return line, to_column(self.lines[line], position.character, encoding)

    def parts(self) -> Iterator[tuple[str, int, int]]:
        """The documents of the program: URI, first line, number of lines."""
        yield self.uri, 0, len(self.lines)

    def line_of(self, uri: str, line: int) -> int | None:
        """The program's line of a document's line, both from 0."""
        return line if uri == self.uri and 0 <= line < len(self.lines) else None

    def place(self, line: int) -> tuple[str, int]:
        """The document and its line of one of the program's lines."""
        return self.uri, line


@dataclass
class Notebook:
    """A notebook: its code cells' Python as one program. Lines for the notebook alone (``%magic``) are masked."""

    uri: str
    version: int | None
    cells: list[tuple[str, Document]] = field(default_factory=list)
    """The kind (``code`` or ``markup``) and the text of each cell."""
    revision: int = field(default_factory=lambda: next(_revisions))
    _lines: tuple[int, list[str], list[tuple[str, int, int]]] | None = None
    _saved: tuple[str, ...] = ()
    """The cells when the notebook was opened or saved last."""

    @property
    def is_notebook(self) -> bool:
        return True

    def touch(self, version: int | None) -> None:
        """Note that a cell or the order of cells has changed."""
        self.version = version
        self.revision = next(_revisions)

    @property
    def python_cells(self) -> list[Document]:
        return [cell for kind, cell in self.cells if kind == "code" and cell.language == "python"]

    @property
    def is_rearranged(self) -> bool:
        """Whether there are other cells, or in another order, than when it was opened or saved last."""
        return self._saved != tuple(cell.uri for _, cell in self.cells)

    def note_saved(self) -> None:
        """Note that the cells are those of the file."""
        self._saved = tuple(cell.uri for _, cell in self.cells)

    @property
    def lines(self) -> list[str]:
        return self._program()[0]

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def parts(self) -> Iterator[tuple[str, int, int]]:
        yield from self._program()[1]

    def _program(self) -> tuple[list[str], list[tuple[str, int, int]]]:
        if self._lines is None or self._lines[0] != self.revision:
            lines: list[str] = []
            parts: list[tuple[str, int, int]] = []
            for cell in self.python_cells:
                python = python_lines(cell.text)
                texts = [content(line) for line in (cell.lines if python is None else split_lines(python))]
                parts.append((cell.uri, len(lines), len(texts)))
                # A cell that is not Python keeps its place, so that lines are found, and its text stays out.
                lines += [f"{text}\n" if python is not None else "\n" for text in texts]
            lines.append("")
            self._lines = (self.revision, lines, parts)
        return self._lines[1], self._lines[2]

    def line_of(self, uri: str, line: int) -> int | None:
        for cell, first, count in self.parts():
            if cell == uri:
                return first + line if 0 <= line < count else None
        return None

    def place(self, line: int) -> tuple[str, int]:
        for cell, first, count in self.parts():
            if first <= line < first + count:
                return cell, line - first
        return self.uri, 0


Program = Document | Notebook


class DocumentStore:
    """All open documents and notebooks by URI, and the client's way to count columns."""

    def __init__(self) -> None:
        self.encoding: Encoding = "utf-16"
        self.documents: dict[str, Document] = {}
        self.notebooks: dict[str, Notebook] = {}
        self._cells: dict[str, Notebook] = {}

    def program(self, uri: str) -> Program | None:
        """The program that a document, a cell or a notebook belongs to; None if it is not open."""
        return self._cells.get(uri) or self.notebooks.get(uri) or self.documents.get(uri)

    def programs(self) -> list[Program]:
        return [*(d for u, d in self.documents.items() if u not in self._cells), *self.notebooks.values()]

    def document(self, uri: str) -> Document | None:
        return self.documents.get(uri)

    def open(self, item: types.TextDocumentItem) -> Document:
        document = Document(item.uri, item.text, item.version, item.language_id)
        self.documents[item.uri] = document
        return document

    def change(self, params: types.DidChangeTextDocumentParams) -> Document | None:
        """The changed document; None if it was never opened."""
        document = self.documents.get(params.text_document.uri)
        if document is not None:
            document.change(params.content_changes, params.text_document.version, self.encoding)
        return document

    def close(self, uri: str) -> None:
        self.documents.pop(uri, None)

    # --- notebooks ------------------------------------------------------------------------------------------------

    def open_notebook(self, item: types.NotebookDocument, texts: Sequence[types.TextDocumentItem]) -> Notebook:
        notebook = Notebook(item.uri, item.version)
        self.notebooks[item.uri] = notebook
        for text in texts:
            self.open(text)
        self._set_cells(notebook, 0, 0, item.cells)
        notebook.note_saved()
        return notebook

    def change_notebook(self, params: types.DidChangeNotebookDocumentParams) -> Notebook | None:
        notebook = self.notebooks.get(params.notebook_document.uri)
        if notebook is None:
            return None
        cells = params.change.cells
        if cells is not None:
            if cells.structure is not None:
                for opened in cells.structure.did_open or ():
                    self.open(opened)
                array = cells.structure.array
                self._set_cells(notebook, array.start, array.delete_count, array.cells or ())
                for closed in cells.structure.did_close or ():
                    self._cells.pop(closed.uri, None)
                    self.close(closed.uri)
            for text in cells.text_content or ():
                document = self.documents.get(text.document.uri)
                if document is not None:
                    document.change(text.changes, text.document.version, self.encoding)
        notebook.touch(params.notebook_document.version)
        return notebook

    def _set_cells(self, notebook: Notebook, start: int, deleted: int, cells: Sequence[types.NotebookCell]) -> None:
        new: list[tuple[str, Document]] = []
        for cell in cells:
            document = self.documents.get(cell.document) or Document(cell.document, "", None)
            self.documents[cell.document] = document
            self._cells[cell.document] = notebook
            new.append(("code" if cell.kind == types.NotebookCellKind.Code else "markup", document))
        notebook.cells[start : start + deleted] = new
        notebook.touch(notebook.version)

    def close_notebook(self, uri: str) -> None:
        notebook = self.notebooks.pop(uri, None)
        for _, cell in notebook.cells if notebook is not None else ():
            self._cells.pop(cell.uri, None)
            self.close(cell.uri)

    # --- positions ------------------------------------------------------------------------------------------------

    def column(self, line: str, character: int) -> int:
        """The code point column of a client's character."""
        return to_column(line, character, self.encoding)

    def position(self, program: Program, line: int, column: int) -> types.Position:
        """The client's position of a line (from 0) and code point column, in the document that holds the line."""
        lines = program.lines
        if line >= len(lines):
            line, column = len(lines) - 1, len(lines[-1])
        _, own = program.place(line)
        return types.Position(own, to_character(lines[line], column, self.encoding))
