"""The document store against a model that is a plain string, under incremental edits in every encoding."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from t2j_lsp.lsp.documents import Document, DocumentStore
from t2j_lsp.lsp.positions import Encoding, split_lines

PIECES = st.text(st.sampled_from("ab\t\r\n\f\u2028é字𝔘\U0001f600"), max_size=8)
CODEC = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


@dataclass
class Model:
    """What the specification says, with nothing but one string and offsets."""

    text: str
    encoding: Encoding

    def starts(self) -> list[int]:
        result, at = [0], 0
        while at < len(self.text):
            if self.text.startswith("\r\n", at):
                at += 2
                result.append(at)
            else:
                at += 1
                if self.text[at - 1] in "\r\n":
                    result.append(at)
        return result

    def offset(self, position: types.Position) -> int:
        starts = self.starts()
        if position.line >= len(starts):
            return len(self.text)
        start = starts[position.line]
        end = starts[position.line + 1] if position.line + 1 < len(starts) else len(self.text)
        line = self.text[start:end].rstrip("\r\n")
        codec, width = CODEC[self.encoding]
        units = line.encode(codec)[: width * position.character]
        return start + len(units.decode(codec, errors="ignore"))

    def replace(self, where: types.Range, new: str) -> None:
        first = self.offset(where.start)
        last = max(first, self.offset(where.end))
        self.text = self.text[:first] + new + self.text[last:]


POSITIONS = st.builds(types.Position, st.integers(0, 6), st.integers(0, 12))
EDITS = st.lists(st.tuples(POSITIONS, POSITIONS, PIECES, st.booleans()), min_size=1, max_size=8)


@pytest.mark.parametrize("encoding", CODEC)
@settings(max_examples=400)
@given(PIECES, EDITS)
def test_edits_give_the_text_that_the_model_has(
    encoding: Encoding, text: str, edits: list[tuple[types.Position, types.Position, str, bool]]
) -> None:
    document, model = Document("untitled:a", text, 1), Model(text, encoding)
    for start, end, new, whole in edits:
        if (start.line, start.character) > (end.line, end.character):
            start, end = end, start
        if whole and not new:
            document.change([types.TextDocumentContentChangeWholeDocument(new)], 2, encoding)
            model.text = new
        else:
            document.change([types.TextDocumentContentChangePartial(types.Range(start, end), new)], 2, encoding)
            model.replace(types.Range(start, end), new)
        assert document.text == model.text
        assert document.lines == split_lines(model.text)


def test_changes_of_one_message_build_on_each_other() -> None:
    document = Document("untitled:a", "ab", 1)
    insert = types.Range(types.Position(0, 2), types.Position(0, 2))
    after = types.Range(types.Position(1, 0), types.Position(1, 1))
    changes = [types.TextDocumentContentChangePartial(insert, "\ncd")]
    changes.append(types.TextDocumentContentChangePartial(after, "é"))
    document.change(changes, 7, "utf-16")
    assert (document.text, document.version) == ("ab\néd", 7)


def test_every_change_gets_a_revision_of_its_own() -> None:
    first, second = Document("untitled:a", "", 1), Document("untitled:b", "", 1)
    before = second.revision
    first.change([types.TextDocumentContentChangeWholeDocument("x")], 1, "utf-16")
    assert first.revision > before


def cell(store: DocumentStore, number: int, text: str) -> tuple[types.NotebookCell, types.TextDocumentItem]:
    uri = f"vscode-notebook-cell:/n.ipynb#{number}"
    return types.NotebookCell(types.NotebookCellKind.Code, uri), types.TextDocumentItem(uri, "python", 1, text)


def notebook(store: DocumentStore, *texts: str) -> None:
    cells, items = zip(*(cell(store, i, text) for i, text in enumerate(texts)), strict=True)
    store.open_notebook(types.NotebookDocument("file:///n.ipynb", "jupyter-notebook", 1, list(cells)), list(items))


def test_a_notebook_is_one_program_whose_lines_know_their_cell() -> None:
    store = DocumentStore()
    notebook(store, "import torch\n%matplotlib inline", "%%bash\nls\n", "x = torch.ones(2)")
    program = store.program("vscode-notebook-cell:/n.ipynb#2")
    assert program is not None and program is store.program("file:///n.ipynb")
    assert program.text == "import torch\npass\n\n\n\nx = torch.ones(2)\n"
    assert program.line_of("vscode-notebook-cell:/n.ipynb#2", 0) == 5
    assert program.place(5) == ("vscode-notebook-cell:/n.ipynb#2", 0)
    assert program.place(1) == ("vscode-notebook-cell:/n.ipynb#0", 1)


def test_cells_come_and_go_with_the_notebook() -> None:
    store = DocumentStore()
    notebook(store, "a = 1", "b = 2")
    new, item = cell(store, 9, "c = 3")
    array = types.NotebookCellArrayChange(0, 1, [new])
    gone = types.TextDocumentIdentifier("vscode-notebook-cell:/n.ipynb#0")
    structure = types.NotebookDocumentCellChangeStructure(array, [item], [gone])
    change = types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(structure))
    identifier = types.VersionedNotebookDocumentIdentifier(2, "file:///n.ipynb")
    store.change_notebook(types.DidChangeNotebookDocumentParams(identifier, change))
    program = store.program("file:///n.ipynb")
    assert program is not None and program.text == "c = 3\nb = 2\n"
    store.close_notebook("file:///n.ipynb")
    assert not store.documents and not store.programs()


def test_documents_that_are_not_open_are_no_error() -> None:
    store = DocumentStore()
    identifier = types.VersionedTextDocumentIdentifier(1, "file:///nothing.py")
    assert store.change(types.DidChangeTextDocumentParams(identifier, [])) is None
    assert store.program("file:///nothing.py") is None
    store.close("file:///nothing.py")
