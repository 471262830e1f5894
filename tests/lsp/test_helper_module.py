"""Helpers in a module beside the files: made, extended, shared, and never written over somebody's own."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .client import Client, Json, ServerError, applied, capabilities, span
from .test_conversions import Editor, path_of

LINEAR = "from torch import nn\n\n\nlayer = nn.Linear(2, 3)\n"
EMBEDDING = "from torch import nn\n\n\nlayer = nn.Embedding(2, 3, padding_idx=0)\n"
POOL = "import torch.nn.functional as F\n\n\ndef pool(x):\n    return F.max_pool2d(x, 2)\n"
OPTIONS = {"settings": {"helpers": "module"}}
NAME = "torch_helpers"
FOREIGN = "def mine():\n    return 1\n"


class Folder:
    """A folder with files, and a client whose server puts helpers into modules."""

    def __init__(self, client: Client, path: Path, **files: str) -> None:
        client.settings = OPTIONS["settings"]
        self.client, self.path, self.editor = client, path, Editor(client)
        for name, text in files.items():
            (path / f"{name}.py").write_text(text)
        self.module = path / f"{NAME}.py"

    def uri(self, name: str) -> str:
        return (self.path / f"{name}.py").as_uri()

    def convert(self, name: str) -> Json:
        return self.client.command("t2j.convertFile", self.uri(name))  # type: ignore[no-any-return]

    def text(self, name: str) -> str:
        return (self.path / f"{name}.py").read_text()

    def complete(self, *names: str) -> None:
        """What these files import from the module is there."""
        bound = defined(self.module.read_text())
        for name in names:
            wanted = imported(self.text(name))
            assert wanted and wanted <= bound, (name, wanted - bound)


def defined(text: str) -> set[str]:
    """The names that a text binds at its top level."""
    namespace: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            namespace.add(node.name)
        elif isinstance(node, ast.Assign):
            namespace |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return namespace


def imported(text: str, module: str = NAME, level: int = 0) -> set[str]:
    """The names that a text imports from the helper module."""
    nodes = [n for n in ast.parse(text).body if isinstance(n, ast.ImportFrom)]
    return {a.name for n in nodes if (n.module, n.level) == (module, level) for a in n.names}


def changed(edit: Json) -> list[str]:
    """The names of the files whose texts an edit changes."""
    return [path_of(c["textDocument"]["uri"]).name for c in edit["documentChanges"] if "kind" not in c]


@pytest.fixture
def begin(lent: Callable[..., Client], tmp_path: Path) -> Callable[..., Folder]:
    def made(caps: Json | None = None, **files: str) -> Folder:
        return Folder(lent(caps, OPTIONS), tmp_path, **files)

    return made


def test_a_file_and_its_module_come_in_one_edit(begin: Callable[..., Folder]) -> None:
    folder = begin(one=LINEAR)
    assert folder.convert("one")["applied"]
    (edit,) = folder.editor.edits
    assert changed(edit) == ["one_jax.py", f"{NAME}.py"]
    folder.complete("one_jax")
    assert not defined(folder.text("one_jax")) & defined(folder.module.read_text())
    # What is there is not written again; a module that is gone comes back.
    assert folder.convert("one")["applied"] and len(folder.editor.edits) == 1
    before = folder.module.read_text()
    folder.module.unlink()
    assert folder.convert("one")["applied"]
    assert changed(folder.editor.edits[-1]) == [f"{NAME}.py"] and folder.module.read_text() == before


def test_helpers_of_several_files_come_together(begin: Callable[..., Folder]) -> None:
    folder = begin(one=LINEAR, two=EMBEDDING, three=POOL)
    for name in ("one", "two", "three"):
        folder.convert(name)
    folder.complete("one_jax", "two_jax", "three_jax")
    # As if all had been converted at once.
    together = folder.module.read_text()
    for path in folder.path.glob("*_jax.py"):
        path.unlink()
    folder.module.unlink()
    result = folder.client.command("t2j.convertFiles", [folder.uri(name) for name in ("one", "two", "three")])
    assert not result["skipped"] and folder.module.read_text() == together
    assert sorted(changed(folder.editor.edits[-1])) == [
        "one_jax.py",
        "three_jax.py",
        f"{NAME}.py",
        "two_jax.py",
    ]


def test_an_edited_module_keeps_what_stands_there(begin: Callable[..., Folder]) -> None:
    folder = begin(one=LINEAR, two=EMBEDDING)
    folder.convert("one")
    edited = folder.module.read_text().replace("def uniform_init(", "def uniform_init(  # mine\n    ") + "\nX = 1\n"
    folder.module.write_text(edited)
    before = len(folder.editor.edits)
    folder.convert("one")
    assert len(folder.editor.edits) == before and folder.module.read_text() == edited
    folder.convert("two")
    folder.complete("one_jax", "two_jax")
    kept = iter(folder.module.read_text().splitlines())
    assert all(line in kept for line in edited.splitlines() if line)


def test_the_module_in_the_editor_counts(begin: Callable[..., Folder]) -> None:
    folder = begin(one=LINEAR, two=EMBEDDING)
    folder.convert("one")
    buffer = folder.module.read_text() + "\n\nmine = 1\n"
    folder.client.open(folder.module.as_uri(), buffer)
    edits: list[Json] = []
    folder.client.answers["workspace/applyEdit"] = lambda params: edits.append(params["edit"]) or {"applied": True}
    folder.convert("two")
    _, converted, about = edits[0]["documentChanges"]
    assert about["textDocument"] == {"uri": folder.module.as_uri(), "version": 1}
    text = applied(buffer, about["edits"])
    assert defined(buffer) < defined(text) and imported(converted["edits"][0]["newText"]) <= defined(text)


@pytest.mark.parametrize("text", [FOREIGN, "def broken(:\n"])
def test_a_module_that_is_not_ours_is_left_alone(begin: Callable[..., Folder], text: str) -> None:
    folder = begin(one=LINEAR)
    folder.module.write_text(text)
    reason = "t2j does not know it" if text == FOREIGN else r"is not Python \(line 1"
    with pytest.raises(ServerError, match=rf"torch_helpers\.py.*{reason}"):
        folder.convert("one")
    (folder.path / "sub").mkdir()
    (folder.path / "sub" / "two.py").write_text(LINEAR)
    uris = [folder.uri("one"), (folder.path / "sub" / "two.py").as_uri()]
    result = folder.client.command("t2j.convertFiles", uris)
    assert result["converted"] == uris[1:] and result["skipped"][0]["uri"] == uris[0]
    assert folder.module.read_text() == text and not (folder.path / "one_jax.py").exists()
    assert (folder.path / "sub" / f"{NAME}.py").exists()


def test_a_module_of_another_machine_is_known_by_its_text(begin: Callable[..., Folder], tmp_path: Path) -> None:
    folder = begin(one=LINEAR)
    folder.convert("one")
    outer = tmp_path / "there"
    outer.mkdir()
    (outer / f"{NAME}.py").write_text(folder.module.read_text())
    other = Folder(folder.client, outer, two=EMBEDDING)
    other.convert("two")
    other.complete("two_jax")
    assert defined(folder.module.read_text()) < defined(other.module.read_text())


def test_a_package_imports_relatively(begin: Callable[..., Folder]) -> None:
    folder = begin(__init__="", one=LINEAR)
    folder.convert("one")
    assert imported(folder.text("one_jax"), level=1) <= defined(folder.module.read_text())


def test_the_action_on_a_file_brings_the_module(begin: Callable[..., Folder]) -> None:
    folder = begin(one=LINEAR)
    folder.client.open(folder.uri("one"), LINEAR)
    folder.client.state(folder.uri("one"), complete=True)
    (action,) = folder.client.actions(folder.uri("one"), span(0, 0), only=["source.convert.t2j"])
    edit = folder.client.resolve(action)["edit"]
    assert changed(edit) == ["one_jax.py", f"{NAME}.py"]


def test_a_part_in_place_brings_the_module(begin: Callable[..., Folder]) -> None:
    folder = begin(one=POOL)
    uri = folder.uri("one")
    folder.client.open(uri, POOL)
    folder.client.state(uri, complete=True)
    offered = folder.client.actions(uri, span(4, 12), only=["refactor"])
    for title in ("Rewrite torch.nn.functional.max_pool2d in place", "Rewrite function pool in place"):
        action = next(a for a in offered if a["title"].startswith(title))
        edit = folder.client.resolve(action)["edit"]
        assert changed(edit) == ["one.py", f"{NAME}.py"]
        one, module = (c["edits"] for c in edit["documentChanges"] if "kind" not in c)
        wanted = imported(applied(POOL, one))
        assert wanted and wanted <= defined(module[0]["newText"])


def test_the_server_writes_the_module_for_a_client_that_cant(begin: Callable[..., Folder]) -> None:
    folder = begin(capabilities(workspace__workspaceEdit={"documentChanges": True}), one=LINEAR, two=POOL)
    uri = folder.uri("two")
    folder.client.open(uri, POOL)
    folder.client.state(uri, complete=True)
    offered = folder.client.actions(uri, span(4, 12), only=["refactor"])
    action = folder.client.resolve(next(a for a in offered if "max_pool2d" in a["title"]))
    assert not folder.module.exists() and "edit" not in action
    command = action["command"]
    assert folder.client.command(command["command"], *command["arguments"])["applied"]
    folder.complete("two")
    assert changed(folder.editor.edits[-1]) == ["two.py"]
    folder.convert("one")
    folder.complete("one_jax", "two")
    (folder.path / "three.py").write_text(EMBEDDING)
    folder.client.command("t2j.convertFiles", [folder.uri("three")])
    folder.complete("one_jax", "two", "three_jax")
    assert len(folder.editor.edits) == 1


def test_a_buffer_that_is_no_file_has_its_helpers_in_it(begin: Callable[..., Folder]) -> None:
    folder = begin()
    folder.client.open("untitled:one.py", LINEAR)
    code = folder.client.command("t2j.previewFile", "untitled:one.py")["code"]
    assert not imported(code) and "uniform_init" in defined(code)


def test_a_notebook_imports_from_the_module_beside_it(begin: Callable[..., Folder]) -> None:
    folder = begin(__init__="")
    book = folder.path / "study.ipynb"
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": LINEAR}
    book.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    folder.client.command("t2j.convertFile", book.as_uri())
    (made,) = json.loads((folder.path / "study_jax.ipynb").read_text())["cells"]
    assert imported("".join(made["source"])) <= defined(folder.module.read_text())


def test_a_conversion_with_its_module_is_checked(start: Callable[..., Client], tmp_path: Path) -> None:
    settings = {**OPTIONS["settings"], "check": {"enable": False, "stage": "numeric"}}
    text = "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
    text += "        super().__init__()\n        self.fc = nn.Linear(3, 2)\n\n    def forward(self, x):\n"
    text += "        return self.fc(torch.nn.functional.max_pool2d(x, 2))\n"
    for name in ("plain", "pkg"):
        (tmp_path / name).mkdir()
    client = start(options={"trusted": True, "settings": settings})
    (tmp_path / "pkg" / "__init__.py").write_text("")
    for name in ("plain", "pkg"):
        folder = Folder(client, tmp_path / name, net=text)
        client.settings = settings
        folder.convert("net")
        assert imported(folder.text("net_jax"), level=int(name == "pkg"))
        client.open(folder.uri("net"), text)
        report = client.command("t2j.check", folder.uri("net"), timeout=240)
        assert (report["verdict"], report["converted"]) == ("equivalent", folder.uri("net_jax")), report
    # What the module does counts.
    folder.module.write_text(folder.module.read_text().replace("lax.max,", "lax.min,"))
    assert "lax.min," in folder.module.read_text()
    report = client.command("t2j.check", folder.uri("net"), timeout=240)
    assert report["verdict"] == "different"
