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
    (found,) = shared.diagnostics(cell)
    assert (found["code"], found["range"]["start"]) == ("refused", {"line": 1, "character": 4})
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
    action = next(a for a in offered if a["title"].startswith("Convert torch.cat"))
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
