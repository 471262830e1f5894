"""Notebooks that are checked and run in the editor: what is found is said in the cell where it stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from .client import Client, Json, at, span
from .pairs import TIMEOUT, different
from .test_lenses import lenses

PROSE = "# A study"
IMPORTS = "%matplotlib inline\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F"
NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 1)

    def forward(self, x):
        y = F.gelu(self.fc(x))
        return y * 2"""
TRAINING = """x = torch.linspace(-1, 1, 40).reshape(20, 2)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    loss = ((model(x) - 1) ** 2).mean()
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.6f}")"""
CODE = (IMPORTS, NET, TRAINING)
SETTINGS: Json = {"check": {"enable": False, "delay": 0.05}, "inlayHints": {"enable": True}}


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server in a trusted workspace, which checks nothing by itself."""
    with Client(log=tmp_path_factory.mktemp("trusted") / "log") as client:
        client.settings = SETTINGS
        client.initialize(None, None, {"trusted": True, "showsChecks": True, "settings": SETTINGS})
        yield client


class Book:
    """A notebook as VS Code has it: the file has prose too, and the Python cells alone are synced."""

    def __init__(self, client: Client, path: Path, texts: tuple[str, ...] = CODE) -> None:
        self.client, self.path, self.uri = client, path, path.as_uri()
        self.texts, self.version = list(texts), 1
        if not path.exists():
            cells: list[Json] = [{"cell_type": "markdown", "metadata": {}, "source": PROSE}]
            about: Json = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
            cells += [{**about, "source": text.splitlines(keepends=True)} for text in texts]
            path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
        document = {"uri": self.uri, "notebookType": "jupyter-notebook", "version": 1}
        listed = [{"kind": 2, "document": self.cell(n)} for n in range(len(texts))]
        items = [{"uri": self.cell(n), "languageId": "python", "version": 1, "text": t} for n, t in enumerate(texts)]
        params = {"notebookDocument": {**document, "cells": listed}, "cellTextDocuments": items}
        client.notify("notebookDocument/didOpen", params)

    def cell(self, number: int) -> str:
        """The document of one of the code cells, counted from 0: the file's cell is two more."""
        return f"vscode-notebook-cell:{self.path.as_posix()}#W{number}"

    def edit(self, number: int, old: str, new: str) -> None:
        assert old in self.texts[number], self.texts[number]
        self.texts[number] = self.texts[number].replace(old, new, 1)
        self.version += 1
        about = {"uri": self.cell(number), "version": self.version}
        changes = {"textContent": [{"document": about, "changes": [{"text": self.texts[number]}]}]}
        params = {"notebookDocument": {"uri": self.uri, "version": self.version}, "change": {"cells": changes}}
        self.client.notify("notebookDocument/didChange", params)

    def converted(self) -> Book:
        """Its conversion, written beside it and opened."""
        answer = self.client.command("t2j.previewFile", self.uri)
        path = self.path.with_name(f"{self.path.stem}_jax.ipynb")
        path.write_text(answer["code"])
        cells = json.loads(answer["code"])["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        return Book(self.client, path, tuple(texts))


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n")


def test_a_notebook_is_checked_before_it_is_converted_and_lenses_stand_in_its_cells(
    trusted: Client, tmp_path: Path
) -> None:
    book = Book(trusted, tmp_path / "alone.ipynb")
    trusted.state(book.cell(1), complete=True)
    assert (0, "Check", "t2j.check") in lenses(trusted, book.cell(1))
    assert (0, "Run both", "t2j.run") in lenses(trusted, book.cell(0))
    answer = trusted.command("t2j.check", book.cell(1), timeout=TIMEOUT)
    assert answer["message"] == "alone.ipynb: unchecked: 1 of 1 class equivalent; top-level code not run"
    assert (answer["uri"], answer["converted"]) == (book.uri, None)
    (title,) = (title for _, title, command in lenses(trusted, book.cell(1)) if command == "t2j.check")
    assert title.startswith("✓ checked: outputs, gradients"), title
    hints = trusted.request("textDocument/inlayHint", {"textDocument": {"uri": book.cell(1)}, "range": span(0, 0, 9)})
    assert {hint["position"]["line"] for hint in hints} >= {6, 7}, hints
    assert not list(tmp_path.glob("*_jax*"))


def test_a_planted_mistake_is_shown_in_its_cell_of_both_notebooks_and_goes_when_it_is_mended(
    trusted: Client, tmp_path: Path
) -> None:
    book = Book(trusted, tmp_path / "study.ipynb")
    converted = book.converted()
    trusted.state(converted.cell(1), complete=True)
    converted.edit(1, "y * 2", "y * 3")
    since = trusted.now
    answer = trusted.command("t2j.check", book.uri, timeout=TIMEOUT)
    assert (answer["verdict"], answer["converted"]) == ("different", converted.uri)
    (error,) = different(trusted, converted.cell(1), since)
    (hint,) = different(trusted, book.cell(1), since)
    assert error["range"]["start"]["line"] == line_of(converted.texts[1], "y * 3")
    assert hint["range"]["start"]["line"] == line_of(NET, "y * 2")
    assert (error["severity"], hint["severity"]) == (1, 4)
    assert "Net differs from PyTorch, study.ipynb, cell 3, line 8: " in error["message"]
    assert f"in study_jax.ipynb, cell 3, line {error['range']['start']['line'] + 1}: " in hint["message"]
    (related,) = error["relatedInformation"]
    assert related["location"]["uri"] == book.cell(1)
    (place,) = trusted.request("textDocument/implementation", at(book.cell(1), 7, 4))
    assert (place["uri"], place["range"]["start"]["line"]) == (
        converted.cell(1),
        line_of(converted.texts[1], "def __call__"),
    )
    values = trusted.command("t2j.explainDifference", book.uri, "Net", timeout=TIMEOUT)
    last = values["steps"][values["first"]]
    assert (last["torch"]["uri"], last["jax"]["uri"]) == (book.cell(1), converted.cell(1)), last
    since = trusted.now
    converted.edit(1, "y * 3", "y * 2")
    assert different(trusted, converted.cell(1), since, verdict=False) == []
    assert trusted.command("t2j.check", converted.cell(1), "Net", timeout=TIMEOUT)["verdict"] == "equivalent"


def test_a_conversion_that_is_not_open_is_named_in_the_source_s_cell(trusted: Client, tmp_path: Path) -> None:
    book = Book(trusted, tmp_path / "closed.ipynb")
    code = trusted.command("t2j.previewFile", book.uri)["code"]
    (tmp_path / "closed_jax.ipynb").write_text(code.replace("y * 2", "y * 3"))
    since = trusted.now
    assert trusted.command("t2j.check", book.uri, timeout=TIMEOUT)["verdict"] == "different"
    (error,) = different(trusted, book.cell(1), since)
    assert error["severity"] == 1 and "Net differs from PyTorch in closed_jax.ipynb, cell 3, line" in error["message"]


def test_a_notebook_is_run_beside_its_conversion_and_parts_at_a_line_of_a_cell(trusted: Client, tmp_path: Path) -> None:
    book = Book(trusted, tmp_path / "run.ipynb")
    report = trusted.command("t2j.run", book.cell(2), timeout=TIMEOUT)
    assert (report["verdict"], report["steps"], report["uri"]) == ("equivalent", 4, book.uri), report
    converted = book.converted()
    converted.edit(2, "0.1", "0.2")
    since = trusted.now
    report = trusted.command("t2j.run", book.uri, timeout=TIMEOUT)
    assert report["verdict"] == "different" and report["divergence"]["torch"]["cell"] == 4, report
    (error,) = different(trusted, converted.cell(2), since)
    assert error["range"]["start"]["line"] == report["divergence"]["jax"]["line"] - 1
    (title,) = (title for _, title, command in lenses(trusted, book.cell(0)) if command == "t2j.run")
    assert title.startswith("≠ programs differ: ") and "· run_jax.ipynb: cell 4, line " in title, title


def test_running_a_cell_makes_no_verdict_stale_and_editing_one_does(trusted: Client, tmp_path: Path) -> None:
    book = Book(trusted, tmp_path / "outputs.ipynb")
    assert trusted.command("t2j.check", book.uri, timeout=TIMEOUT)["stale"] is False
    data = json.loads(book.path.read_text())
    data["cells"][3]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["loss 1\n"]}]
    book.path.write_text(json.dumps(data))
    trusted.notify("notebookDocument/didSave", {"notebookDocument": {"uri": book.uri}})
    assert trusted.state(book.cell(1))["check"] == {**trusted.state(book.cell(1))["check"], "stale": False}
    book.edit(1, "y * 2", "y * 4")
    assert trusted.state(book.cell(1))["check"]["stale"] is True


def test_a_notebook_is_converted_and_checked_by_one_action(trusted: Client, tmp_path: Path) -> None:
    book = Book(trusted, tmp_path / "both.ipynb")
    trusted.state(book.cell(1), complete=True)

    def apply(params: Json) -> Json:
        (_, made) = params["edit"]["documentChanges"]
        (tmp_path / "both_jax.ipynb").write_text(made["edits"][0]["newText"])
        return {"applied": True}

    before = trusted.answers["workspace/applyEdit"]
    trusted.answers["workspace/applyEdit"] = apply
    try:
        (action,) = trusted.actions(book.cell(1), span(0, 0), only=["source.convertAndCheck.t2j"])
        answer = trusted.command(action["command"]["command"], *action["command"]["arguments"], timeout=TIMEOUT)
    finally:
        trusted.answers["workspace/applyEdit"] = before
    assert (answer["applied"], answer["uri"]) == (True, (tmp_path / "both_jax.ipynb").as_uri())
    assert answer["checked"]["message"] == "both.ipynb: unchecked: 1 of 1 class equivalent; top-level code not run"
    place, *_ = answer["checked"]["coverage"]["not_run"]
    assert (place["name"], place["cell"], place["line"], place["end_line"]) == ("<script>", 4, 1, 2), place
