"""Long helpers of one file in a module of its own beside it: made by one edit, found by checks, over nobody's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from t2j_lsp.contract import HELPERS_DOCSTRING

from .client import Client, Json, ServerError, capabilities, span
from .test_conversions import Editor
from .test_helper_module import changed, defined, imported

LOSS = "import torch\nimport torch.nn.functional as F\n\n\ndef loss(x: torch.Tensor, y: torch.Tensor):\n"
LOSS += "    return F.gaussian_nll_loss(x, y, y.exp())\n"
MODULE = "net_jax_helpers"


class Folder:
    """A folder with a file, and a client whose server lets two lines of helpers stand in a file."""

    def __init__(self, client: Client, path: Path) -> None:
        client.settings = {"helperLines": 2}
        self.client, self.path, self.editor = client, path, Editor(client)
        self.source, self.target, self.module = path / "net.py", path / "net_jax.py", path / f"{MODULE}.py"
        self.source.write_text(LOSS)

    def convert(self) -> Json:
        return self.client.command("t2j.convertFile", self.source.as_uri())  # type: ignore[no-any-return]

    def is_pair(self) -> bool:
        wanted = imported(self.target.read_text(), MODULE)
        return bool(wanted) and wanted <= defined(self.module.read_text())

    def is_one(self) -> bool:
        code = self.target.read_text()
        return "gaussian_nll_loss" in defined(code) and not imported(code, MODULE)


@pytest.fixture
def begin(lent: Callable[..., Client], tmp_path: Path) -> Callable[..., Folder]:
    return lambda caps=None: Folder(lent(caps, {"settings": {"helperLines": 2}}), tmp_path)


def test_both_files_come_in_one_edit(begin: Callable[..., Folder]) -> None:
    folder = begin()
    assert folder.convert()["applied"] and folder.is_pair()
    (edit,) = folder.editor.edits
    assert changed(edit) == ["net_jax.py", f"{MODULE}.py"]
    assert [c["kind"] for c in edit["documentChanges"] if "kind" in c] == ["create", "create"]
    # What is there is not written again; a module that is gone comes back, alone.
    assert folder.convert()["applied"] and len(folder.editor.edits) == 1
    before = folder.module.read_text()
    folder.module.unlink()
    assert folder.convert()["applied"]
    assert changed(folder.editor.edits[-1]) == [f"{MODULE}.py"] and folder.module.read_text() == before
    # Another conversion changes both.
    folder.source.write_text(LOSS.replace("y.exp())", "y.exp(), full=True)"))
    assert folder.convert()["applied"] and "full" in folder.module.read_text() and folder.is_pair()


def test_the_action_and_many_files_bring_it(begin: Callable[..., Folder]) -> None:
    folder = begin()
    uri = folder.source.as_uri()
    folder.client.open(uri, LOSS)
    folder.client.state(uri, complete=True)
    (action,) = folder.client.actions(uri, span(0, 0), only=["source.convert.t2j"])
    assert changed(folder.client.resolve(action)["edit"]) == ["net_jax.py", f"{MODULE}.py"]
    (folder.path / "more.py").write_text(LOSS)
    uris = [uri, (folder.path / "more.py").as_uri()]
    assert folder.client.command("t2j.convertFiles", uris) == {"converted": uris, "skipped": []}
    (edit,) = folder.editor.edits
    assert len(changed(edit)) == 4 and folder.is_pair() and (folder.path / "more_jax_helpers.py").exists()
    assert [one["reason"] for one in folder.client.command("t2j.convertFiles", uris)["skipped"]] == [
        "its conversion is up to date"
    ] * 2


def test_a_client_that_creates_no_files_has_them_in_the_file(begin: Callable[..., Folder]) -> None:
    folder = begin(capabilities(workspace__workspaceEdit={"documentChanges": True}))
    assert folder.convert()["applied"] and folder.is_one()
    assert not folder.module.exists()


def test_a_file_of_somebody_else_stays(begin: Callable[..., Folder]) -> None:
    folder = begin()
    folder.module.write_text("MINE = 1\n")
    assert folder.convert()["applied"] and folder.is_one()
    assert folder.module.read_text() == "MINE = 1\n"


def test_what_was_edited_is_merged_into(begin: Callable[..., Folder]) -> None:
    folder = begin()
    folder.convert()
    folder.module.write_text(folder.module.read_text().replace(HELPERS_DOCSTRING, '"""Mine."""'))
    folder.source.write_text(f"{LOSS}\n\ndef more(x: torch.Tensor, y: torch.Tensor):\n    return F.kl_div(x, y)\n")
    assert folder.convert()["conflicts"] == 0 and folder.is_pair()
    assert folder.module.read_text().startswith('"""Mine."""') and "def kl_div(" in folder.module.read_text()
    # Where nothing is known of what stands there, it is no base.
    (folder.path / "net_jax_helpers.py").write_text(f"{HELPERS_DOCSTRING}\n\n<<<<<<< as edited\n")
    with pytest.raises(ServerError, match=r"net_jax_helpers\.py has a conflict"):
        folder.convert()


def test_a_notebook_has_them_in_it(begin: Callable[..., Folder]) -> None:
    folder = begin()
    book = folder.path / "net.ipynb"
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": LOSS}
    book.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    folder.client.command("t2j.convertFile", book.as_uri())
    assert "def gaussian_nll_loss(" in (folder.path / "net_jax.ipynb").read_text() and not folder.module.exists()


def test_a_pair_is_checked_and_what_the_module_does_counts(start: Callable[..., Client], tmp_path: Path) -> None:
    settings = {"helperLines": 2, "check": {"enable": False, "stage": "numeric"}}
    folder = Folder(start(options={"trusted": True, "settings": settings}), tmp_path)
    folder.client.settings = settings
    folder.convert()
    assert folder.is_pair()
    uri = folder.source.as_uri()
    folder.client.open(uri, LOSS)
    report = folder.client.command("t2j.check", uri, timeout=240)
    assert (report["verdict"], report["converted"]) == ("equivalent", folder.target.as_uri()), report
    folder.module.write_text(folder.module.read_text().replace("mean(", "sum("))
    assert folder.client.command("t2j.check", uri, timeout=240)["verdict"] == "different"
