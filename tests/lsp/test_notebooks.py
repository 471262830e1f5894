"""Notebooks over a real server: cells are one program, and what is said lands in the right cell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .client import Client, Json, ServerError, applied, span

CELLS = (
    "import torch\n%matplotlib inline",
    "# prose",
    "def f(x: torch.Tensor):\n    x.register_hook(print)\n    return x",
    "y = torch.cat([f(torch.zeros(2))])",
)
KINDS = (2, 1, 2, 2)


def cell_uri(name: str, number: int) -> str:
    return f"vscode-notebook-cell:/{name}#{number}"


def opened(client: Client, uri: str, name: str, cells: tuple[str, ...] = CELLS) -> None:
    document = {"uri": uri, "notebookType": "jupyter-notebook", "version": 1}
    listed = [{"kind": kind, "document": cell_uri(name, i)} for i, kind in enumerate(KINDS)]
    texts = [
        {"uri": cell_uri(name, i), "languageId": "python" if KINDS[i] == 2 else "markdown", "version": 1, "text": text}
        for i, text in enumerate(cells)
    ]
    params = {"notebookDocument": {**document, "cells": listed}, "cellTextDocuments": texts}
    client.notify("notebookDocument/didOpen", params)


def test_a_call_is_known_across_cells_and_shown_in_its_own(shared: Client) -> None:
    opened(shared, "untitled:hover.ipynb", "hover")
    shared.state(cell_uri("hover", 3))
    hover = shared.hover(cell_uri("hover", 3), 0, 8)
    assert "jnp.concatenate([f(jnp.zeros(2))])" in hover["contents"]["value"]
    assert hover["range"] == span(0, 4, 0, len(CELLS[3]))
    assert shared.hover(cell_uri("hover", 1), 0, 2) is None


def test_findings_are_pushed_to_their_cell_and_follow_edits(shared: Client) -> None:
    opened(shared, "untitled:findings.ipynb", "findings")
    cell = cell_uri("findings", 2)
    (result,) = shared.diagnostics(cell)
    assert (result["code"], result["range"]["start"]) == ("t2j-refused", {"line": 1, "character": 4})
    since = shared.now
    change = {"document": {"uri": cell, "version": 2}, "changes": [{"range": span(1, 0, 2, 0), "text": ""}]}
    params = {
        "notebookDocument": {"uri": "untitled:findings.ipynb", "version": 2},
        "change": {"cells": {"textContent": [change]}},
    }
    shared.notify("notebookDocument/didChange", params)
    assert shared.diagnostics(cell, since=since) == []


def test_a_cell_is_converted_in_place_with_its_imports_in_the_first(shared: Client) -> None:
    opened(shared, "untitled:convert.ipynb", "convert")
    cell = cell_uri("convert", 3)
    shared.state(cell)
    offered = shared.actions(cell, span(0, 8), only=["refactor"])
    action = next(a for a in offered if a["title"].startswith("Rewrite torch.cat"))
    edits = {
        change["textDocument"]["uri"]: change["edits"] for change in shared.resolve(action)["edit"]["documentChanges"]
    }
    assert applied(CELLS[3], edits[cell]) == "y = jnp.concatenate([f(jnp.zeros(2))])"
    assert (
        applied(CELLS[0], edits[cell_uri("convert", 0)]) == "import torch\nimport jax.numpy as jnp\n%matplotlib inline"
    )


def test_imports_go_to_the_end_of_their_cell_and_not_into_the_next(shared: Client) -> None:
    cells = ("import torch", CELLS[1], "%%bash\nls", CELLS[3].replace("f(torch.zeros(2))", "torch.zeros(2)"))
    opened(shared, "untitled:bash.ipynb", "bash", cells)
    cell = cell_uri("bash", 3)
    shared.state(cell)
    action = next(a for a in shared.actions(cell, span(0, 8), only=["refactor"]) if "torch.cat" in a["title"])
    changes = shared.resolve(action)["edit"]["documentChanges"]
    edits = {change["textDocument"]["uri"]: change["edits"] for change in changes}
    assert applied(cells[0], edits[cell_uri("bash", 0)]) == "import torch\nimport jax.numpy as jnp"
    assert set(edits) == {cell, cell_uri("bash", 0)}


def written(path: Path, cells: tuple[str, ...]) -> None:
    listed = [
        {"cell_type": "code", "source": text, "metadata": {}, "outputs": [], "execution_count": None}
        if kind == 2
        else {"cell_type": "markdown", "source": text, "metadata": {}}
        for text, kind in zip(cells, KINDS, strict=True)
    ]
    path.write_text(json.dumps({"cells": listed, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))


def test_a_notebook_becomes_a_notebook_beside_it_with_unsaved_edits(shared: Client, tmp_path: Path) -> None:
    path = tmp_path / "study.ipynb"
    written(path, ("old", *CELLS[1:]))
    opened(shared, path.as_uri(), "study")
    cell = cell_uri("study", 3)
    shared.state(cell)
    (action,) = shared.actions(cell, span(0, 0), only=["source.convert.t2j"])
    create, insert = shared.resolve(action)["edit"]["documentChanges"]
    assert create["uri"] == (tmp_path / "study_jax.ipynb").as_uri()
    made: Json = json.loads(insert["edits"][0]["newText"])
    sources = ["".join(cell["source"]) for cell in made["cells"]]
    assert "import jax.numpy as jnp" in sources[0] and sources[0].endswith("%matplotlib inline")
    assert "jnp.concatenate" in sources[3] and sources[1] == "# prose"


# --- synced as VS Code does: the Python cells alone -------------------------------------------------------------------

STUDY = ("import torch", "x = torch.ones(3)", "y = torch.cat([x, x])", "z = 1")


class Study:
    """A notebook with prose between its cells, on disk and open in an editor that keeps the prose to itself."""

    def __init__(self, client: Client, path: Path) -> None:
        self.client, self.path, self.uri = client, path, path.as_uri()
        self.version = 1
        cells: list[Json] = [{"cell_type": "markdown", "source": ["# Study\n", "prose"], "metadata": {}}]
        cells.append({"cell_type": "raw", "source": "not code", "metadata": {}})
        for number, text in enumerate(STUDY):
            outputs = [{"output_type": "stream", "name": "stdout", "text": [f"{number}\n"]}]
            about = {"metadata": {"tags": [f"tag{number}"]}, "outputs": outputs, "execution_count": number + 1}
            cells.append({"cell_type": "code", "source": text.splitlines(True), **about})
            cells.append({"cell_type": "markdown", "source": f"after {number}", "metadata": {}})
        other = {"cell_type": "code", "source": "ls", "metadata": {"vscode": {"languageId": "shellscript"}}}
        cells.insert(3, {**other, "outputs": [], "execution_count": None})
        path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
        self.open(STUDY)

    def cell(self, number: int) -> str:
        return cell_uri(self.path.stem, number)

    def open(self, texts: tuple[str, ...]) -> None:
        document = {"uri": self.uri, "notebookType": "jupyter-notebook", "version": 1}
        listed = [{"kind": 2, "document": self.cell(i)} for i in range(len(texts))]
        items = [{"uri": self.cell(i), "languageId": "python", "version": 1, "text": t} for i, t in enumerate(texts)]
        params = {"notebookDocument": {**document, "cells": listed}, "cellTextDocuments": items}
        self.client.notify("notebookDocument/didOpen", params)

    def close(self) -> None:
        texts = [{"uri": self.cell(i)} for i in range(len(STUDY))]
        params = {"notebookDocument": {"uri": self.uri}, "cellTextDocuments": texts}
        self.client.notify("notebookDocument/didClose", params)

    def _changed(self, cells: Json) -> None:
        self.version += 1
        about = {"uri": self.uri, "version": self.version}
        self.client.notify("notebookDocument/didChange", {"notebookDocument": about, "change": {"cells": cells}})

    def edit(self, number: int, text: str) -> None:
        about = {"uri": self.cell(number), "version": self.version + 1}
        self._changed({"textContent": [{"document": about, "changes": [{"text": text}]}]})

    def order(self, *numbers: int) -> None:
        """Put the cells into another order."""
        cells = [{"kind": 2, "document": self.cell(i)} for i in numbers]
        self._changed({"structure": {"array": {"start": 0, "deleteCount": len(STUDY), "cells": cells}}})

    def save(self, texts: tuple[str, ...]) -> None:
        """What the editor does: the file has the texts in this order, and the server is told."""
        data = json.loads(self.path.read_text())
        code = [c for c in data["cells"] if c["cell_type"] == "code" and not c["metadata"].get("vscode")]
        for cell, text in zip(code, texts, strict=True):
            cell["source"] = text
        self.path.write_text(json.dumps(data))
        self.client.notify("notebookDocument/didSave", {"notebookDocument": {"uri": self.uri}})

    def converted(self) -> list[Json]:
        return json.loads(self.client.command("t2j.previewFile", self.uri)["code"])["cells"]  # type: ignore[no-any-return]

    def refused(self) -> None:
        with pytest.raises(ServerError, match="save the notebook first: cells were added, removed or moved"):
            self.client.command("t2j.previewFile", self.uri)


@pytest.fixture
def study(shared: Client, tmp_path: Path) -> Study:
    return Study(shared, tmp_path / "prose.ipynb")


def test_unsaved_edits_of_a_notebook_with_prose_are_converted(study: Study) -> None:
    study.edit(1, "x = torch.ones(7)")
    study.edit(3, "z = 2")
    saved = json.loads(study.path.read_text())["cells"]
    made = study.converted()
    texts = ["".join(cell["source"]) for cell in made]
    assert [c["metadata"] for c in made] == [c["metadata"] for c in saved]
    assert [t for t, c in zip(texts, made, strict=True) if c["cell_type"] != "code"] == [
        "".join(c["source"]) for c in saved if c["cell_type"] != "code"
    ]
    code = [text for text, cell in zip(texts, made, strict=True) if cell["cell_type"] == "code"]
    assert code[1:] == ["ls", "x = jnp.ones(7)", "y = jnp.concatenate([x, x])", "z = 2"]


def test_outputs_stay_with_the_text_that_made_them(study: Study) -> None:
    # Nothing to convert: outputs are not cleared for the conversion's sake.
    plain = ("a = 1", "b = 2", "c = 3", "d = 4")
    study.close()
    study.save(plain)
    study.open(plain)
    assert [len(c["outputs"]) for c in study.converted() if c["cell_type"] == "code"] == [1, 0, 1, 1, 1]
    study.edit(2, "c = 33")
    made = [c for c in study.converted() if c["cell_type"] == "code"]
    assert [len(c["outputs"]) for c in made] == [1, 0, 1, 0, 1]
    assert [c["execution_count"] for c in made] == [1, None, 2, None, 4]


def test_cells_that_were_moved_or_left_have_to_be_saved_first(study: Study) -> None:
    study.order(0, 2, 1, 3)
    study.refused()
    # Edited on top, so that no text tells where it came from.
    study.edit(1, "x = torch.ones(8)")
    study.edit(2, "y = torch.cat([x])")
    study.refused()
    study.save((STUDY[0], "y = torch.cat([x])", "x = torch.ones(8)", STUDY[3]))
    study.edit(1, "x = torch.ones(9)")
    code = ["".join(c["source"]) for c in study.converted() if c["cell_type"] == "code"]
    assert code[2:4] == ["y = jnp.concatenate([x])", "x = jnp.ones(9)"]
    study.order(0, 1, 2)
    study.refused()


def test_cells_that_were_moved_before_the_notebook_was_opened_are_known_by_their_text(study: Study) -> None:
    # As after a crash: the editor brings back what was never saved.
    study.close()
    study.open((STUDY[0], STUDY[2], "x = torch.ones(5)", STUDY[3]))
    study.refused()


def test_a_cell_that_repeats_another_was_not_moved(study: Study) -> None:
    study.edit(3, STUDY[2])
    study.edit(1, "")
    code = ["".join(c["source"]) for c in study.converted() if c["cell_type"] == "code"]
    assert code[2:] == ["", *["y = jnp.concatenate([x, x])"] * 2]


def test_a_notebook_without_a_file_has_to_be_saved_first(shared: Client) -> None:
    opened(shared, "untitled:new.ipynb", "new")
    cell = cell_uri("new", 3)
    shared.state(cell)
    (action,) = shared.actions(cell, span(0, 0), only=["source.convert.t2j"])
    assert "save the notebook first" in action["disabled"]["reason"]
    with pytest.raises(ServerError, match="save the notebook first"):
        shared.command("t2j.convertFile", cell)


def test_a_closed_notebook_takes_its_diagnostics_away(shared: Client) -> None:
    opened(shared, "untitled:closed.ipynb", "closed")
    cell = cell_uri("closed", 2)
    shared.diagnostics(cell)
    since = shared.now
    document = {"uri": "untitled:closed.ipynb"}
    texts = [{"uri": cell_uri("closed", i)} for i in range(4)]
    shared.notify("notebookDocument/didClose", {"notebookDocument": document, "cellTextDocuments": texts})
    assert shared.diagnostics(cell, since=since) == []
    assert shared.hover(cell, 1, 6) is None
