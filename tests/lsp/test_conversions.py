"""Whole files: previewed, merged into conversions that were edited by hand, and many at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .client import Client, Json, ServerError, applied, capabilities, span
from .programs import NET, place_of

DOCSTRING = '"""Edited by hand."""\n'
CHANGED = NET.replace("nn.Linear(8, 4)", "nn.Linear(8, 5)")


class Editor:
    """The client's side of a workspace edit: it writes what it is told to and keeps what it had open."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.edits: list[Json] = []
        client.answers["workspace/applyEdit"] = self.apply

    def apply(self, params: Json) -> Json:
        self.edits.append(params["edit"])
        for change in params["edit"]["documentChanges"]:
            if "kind" in change:
                continue
            path = path_of(change["textDocument"]["uri"])
            text = path.read_text() if path.exists() else ""
            path.write_text(applied(text, change["edits"]))
        return {"applied": True}


def path_of(uri: str) -> Path:
    from t2j_lsp.lsp.paths import to_path

    path = to_path(uri)
    assert path is not None
    return path


@pytest.fixture
def pair(lent: Callable[..., Client], tmp_path: Path) -> tuple[Client, str, Path, Editor]:
    """A server, the URI of an open file, and its conversion, made by the server and edited by hand."""
    client = lent()
    editor = Editor(client)
    uri, target = (tmp_path / "net.py").as_uri(), tmp_path / "net_jax.py"
    client.open(uri, NET)
    assert client.command("t2j.convertFile", uri)["applied"]
    target.write_text(DOCSTRING + target.read_text())
    return client, uri, target, editor


def convert_again(client: Client, uri: str, text: str) -> None:
    client.change(uri, 2, {"text": text})


def test_a_preview_says_what_would_be_written_and_writes_nothing(shared: Client, tmp_path: Path) -> None:
    uri = (tmp_path / "net.py").as_uri()
    shared.open(uri, NET)
    preview = shared.command("t2j.previewFile", uri)
    code = preview.pop("code")
    compile(code, "net", "exec")
    assert "class Net(nnx.Module)" in code and "# TODO(t2j)" in code
    notes = preview.pop("notes")
    assert isinstance(notes, int)
    lines = code.splitlines()
    places = preview.pop("places")
    starts = {"Net": "class Net(nnx.Module):", "watch": "def watch(", "order": "def order("}
    assert list(places) == list(starts) and all(lines[places[n]].startswith(text) for n, text in starts.items())
    # The reader starts at the first definition of the user's; the helper that was copied stands below.
    assert preview.pop("first") == places["Net"]
    ((first, last),) = preview.pop("helpers")
    assert "def svd_with_v(" in "\n".join(lines[first : last + 1]) and first > places["order"]
    target = (tmp_path / "net_jax.py").as_uri()
    assert preview == {"uri": uri, "target": target, "exists": False, "merged": False, "conflicts": 0, "gaps": 1}
    assert not list(tmp_path.iterdir())


def test_a_buffer_that_is_no_file_has_a_preview_without_a_target(shared: Client, uri: str) -> None:
    shared.open(uri, NET)
    preview = shared.command("t2j.previewFile", uri)
    assert preview["target"] is None and preview["uri"] == uri and "nnx.Module" in preview["code"]


def test_a_file_that_is_not_open_is_read_from_disk(shared: Client, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET)
    preview = shared.command("t2j.previewFile", (tmp_path / "net.py").as_uri())
    assert "class Net(nnx.Module)" in preview["code"]
    with pytest.raises(ServerError, match=r"none\.py"):
        shared.command("t2j.previewFile", (tmp_path / "none.py").as_uri())
    with pytest.raises(ServerError, match="it is not open"):
        shared.command("t2j.previewFile", "untitled:none")


def test_a_new_conversion_is_merged_into_the_edited_one(pair: tuple[Client, str, Path, Editor]) -> None:
    client, uri, target, editor = pair
    convert_again(client, uri, CHANGED)
    preview = client.command("t2j.previewFile", uri)
    assert preview["merged"] and preview["exists"] and not preview["conflicts"]
    assert preview["code"].startswith(DOCSTRING) and "5" in preview["code"]
    before = len(editor.edits)
    result = client.command("t2j.convertFile", uri)
    assert result["applied"] and result["merged"] and not result["conflicts"]
    assert target.read_text() == preview["code"]
    # One edit of what is there, and no file made anew: the editor can take it back.
    (edit,) = editor.edits[before:]
    assert [list(change) for change in edit["documentChanges"]] == [["textDocument", "edits"]]
    # The same again changes nothing, and asks the editor for nothing.
    assert client.command("t2j.convertFile", uri)["applied"]
    assert len(editor.edits) == before + 1 and target.read_text() == preview["code"]


def test_the_open_buffer_wins_over_the_file(pair: tuple[Client, str, Path, Editor]) -> None:
    client, uri, target, _ = pair
    buffer = "# In the buffer alone.\n" + target.read_text().removeprefix(DOCSTRING)
    client.open(target.as_uri(), buffer)
    convert_again(client, uri, CHANGED)
    code = client.command("t2j.previewFile", uri)["code"]
    assert code.startswith("# In the buffer alone.\n") and DOCSTRING not in code and "5" in code


def test_conflicts_are_marked_and_counted_and_asked_about(pair: tuple[Client, str, Path, Editor]) -> None:
    client, uri, target, editor = pair
    mine = target.read_text()
    linear = next(line for line in mine.splitlines() if "nnx.Linear(" in line)
    target.write_text(mine.replace(linear, linear + "  # mine"))
    convert_again(client, uri, CHANGED)
    preview = client.command("t2j.previewFile", uri)
    assert preview["conflicts"] == 1 and preview["code"].count("<<<<<<< as edited") == 1
    result = client.command("t2j.convertFile", uri)
    assert result["conflicts"] == 1 and target.read_text() == preview["code"]
    (annotation,) = editor.edits[-1]["changeAnnotations"].values()
    assert annotation["needsConfirmation"] and "<<<<<<<" in annotation["description"]
    with pytest.raises(ServerError, match=r"net_jax\.py has a conflict of an earlier merge at line \d+"):
        client.command("t2j.convertFile", uri)


def test_the_action_on_an_edited_conversion_is_called_a_merge(pair: tuple[Client, str, Path, Editor]) -> None:
    client, uri, target, _ = pair
    convert_again(client, uri, CHANGED)
    client.state(uri, complete=True)
    (action,) = client.actions(uri, span(0, 0), only=["source.convert.t2j"])
    assert action["title"] == "Merge new conversion into net_jax.py"
    (change,) = client.resolve(action)["edit"]["documentChanges"]
    text = applied(target.read_text(), change["edits"])
    assert text.startswith(DOCSTRING) and "5" in text


def test_an_edit_that_was_never_applied_is_no_base(pair: tuple[Client, str, Path, Editor]) -> None:
    client, uri, target, _ = pair
    convert_again(client, uri, CHANGED)
    client.state(uri, complete=True)
    (action,) = client.actions(uri, span(0, 0), only=["source.convert.t2j"])
    client.resolve(action)
    # The user looked at it and went on: the file has the first conversion, and 5 is still to come.
    target.with_name("other.py").write_text(CHANGED)
    fresh = client.command("t2j.previewFile", target.with_name("other.py").as_uri())["code"]
    assert client.command("t2j.previewFile", uri)["code"] == DOCSTRING + fresh


def test_a_conversion_that_nobody_edited_is_replaced(lent: Callable[..., Client], tmp_path: Path) -> None:
    client = lent()
    Editor(client)
    uri, target = (tmp_path / "net.py").as_uri(), tmp_path / "net_jax.py"
    client.open(uri, NET)
    client.command("t2j.convertFile", uri)
    convert_again(client, uri, CHANGED)
    preview = client.command("t2j.previewFile", uri)
    assert preview["exists"] and not preview["merged"]
    client.command("t2j.convertFile", uri)
    assert target.read_text() == preview["code"]


def test_the_server_merges_for_a_client_that_cant_create_files(start: Callable[..., Client], tmp_path: Path) -> None:
    client = start(capabilities(workspace__workspaceEdit={"documentChanges": True}))
    uri, target = (tmp_path / "net.py").as_uri(), tmp_path / "net_jax.py"
    client.open(uri, NET)
    client.command("t2j.convertFile", uri)
    target.write_text(DOCSTRING + target.read_text())
    convert_again(client, uri, CHANGED)
    assert client.command("t2j.convertFile", uri)["merged"]
    assert target.read_text().startswith(DOCSTRING)
    assert target.read_text() == client.command("t2j.previewFile", uri)["code"]


def test_an_open_target_that_is_not_saved_is_not_written_under_the_editor(
    start: Callable[..., Client], tmp_path: Path
) -> None:
    client = start(capabilities(workspace__applyEdit=None))
    uri, target = (tmp_path / "net.py").as_uri(), tmp_path / "net_jax.py"
    client.open(uri, NET)
    client.command("t2j.convertFile", uri)
    written = target.read_text()
    client.open(target.as_uri(), written + "\n# not saved\n")
    convert_again(client, uri, CHANGED)
    with pytest.raises(ServerError, match=r"net_jax\.py is open and not saved"):
        client.command("t2j.convertFile", uri)
    assert target.read_text() == written
    target.write_text(written + "\n# not saved\n")
    assert client.command("t2j.convertFile", uri)["merged"]
    assert target.read_text().endswith("\n# not saved\n") and target.read_text() != written


def test_an_edited_notebook_is_merged_as_long_as_it_stays_one(lent: Callable[..., Client], tmp_path: Path) -> None:
    client = lent()
    Editor(client)
    book, target = tmp_path / "net.ipynb", tmp_path / "net_jax.ipynb"

    def save(path: Path, *cells: str) -> None:
        result = [
            {"cell_type": "code", "metadata": {}, "outputs": [], "source": text.splitlines(True)} for text in cells
        ]
        path.write_text(json.dumps({"cells": result, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1))

    save(book, "import torch", "x = torch.ones(3)", "y = torch.ones(4)")
    client.command("t2j.convertFile", book.as_uri())
    target.write_text(target.read_text().replace("x = ", "mine = "))
    save(book, "import torch", "x = torch.ones(3)", "y = torch.ones(5)")
    assert client.command("t2j.convertFile", book.as_uri())["merged"]
    sources = ["".join(cell["source"]) for cell in json.loads(target.read_text())["cells"]]
    assert sources[1] == "mine = jnp.ones(3)" and sources[2] == "y = jnp.ones(5)"
    save(book, "import torch", "x = torch.ones(6)", "y = torch.ones(5)")
    with pytest.raises(ServerError, match="a notebook can't hold conflict marks"):
        client.command("t2j.convertFile", book.as_uri())


# --- many at once -----------------------------------------------------------------------------------------------------


def skipped(result: Json) -> dict[str, str]:
    return {path_of(one["uri"]).name: one["reason"] for one in result["skipped"]}


def test_many_files_are_converted_in_one_edit(lent: Callable[..., Client], tmp_path: Path) -> None:
    client = lent()
    editor = Editor(client)
    for name in ("a", "b", "current", "clash", "foreign"):
        (tmp_path / f"{name}.py").write_text(NET)
    (tmp_path / "bad.py").write_text("def f(:\n")
    (tmp_path / "foreign_jax.py").write_text("mine\n")
    for name in ("current", "clash"):
        client.command("t2j.convertFile", (tmp_path / f"{name}.py").as_uri())
    clash = tmp_path / "clash_jax.py"
    clash.write_text("".join(f"{line}  # mine\n" for line in clash.read_text().splitlines()))
    (tmp_path / "clash.py").write_text(CHANGED)
    client.open((tmp_path / "b.py").as_uri(), CHANGED)
    before = len(editor.edits)
    names = ("a", "b", "current", "clash", "foreign", "bad", "none", "current_jax", "a")
    result = client.command("t2j.convertFiles", [(tmp_path / f"{name}.py").as_uri() for name in names])
    assert [path_of(uri).name for uri in result["converted"]] == ["a.py", "b.py"]
    assert len(editor.edits) == before + 1
    reasons = skipped(result)
    assert set(reasons) == {"current.py", "clash.py", "foreign.py", "bad.py", "none.py", "current_jax.py"}
    assert reasons["current.py"] == "its conversion is up to date"
    assert "clash_jax.py was edited where the new conversion differs" in reasons["clash.py"]
    assert "t2j does not know it" in reasons["foreign.py"]
    assert "is a conversion itself" in reasons["current_jax.py"]
    assert "class Net(nnx.Module)" in (tmp_path / "a_jax.py").read_text()
    assert "5" in (tmp_path / "b_jax.py").read_text()
    assert (tmp_path / "foreign_jax.py").read_text() == "mine\n" and "<<<<<<<" not in clash.read_text()


def test_what_the_user_saw_is_not_asked_about_again(lent: Callable[..., Client], tmp_path: Path) -> None:
    client = lent()
    editor = Editor(client)
    (tmp_path / "hooked.py").write_text("import torch\n\n\ndef f(x: torch.Tensor):\n    x.register_hook(print)\n")
    uri = (tmp_path / "hooked.py").as_uri()
    client.open(uri, (tmp_path / "hooked.py").read_text())
    for confirmed in (False, True):
        assert client.command("t2j.convertFile", uri, confirmed)["gaps"] == 1
        assert bool(editor.edits[-1].get("changeAnnotations")) is not confirmed
        (tmp_path / "hooked_jax.py").unlink()
        client.command("t2j.convertFiles", [uri], confirmed)
        assert bool(editor.edits[-1].get("changeAnnotations")) is not confirmed
        (tmp_path / "hooked_jax.py").unlink()


def test_new_files_are_a_refactoring_and_parts_of_the_users_own_are_not(
    start: Callable[..., Client], tmp_path: Path
) -> None:
    """VS Code saves the files of a refactoring: those that we make, and not those that the user edits."""
    client = start(capabilities(workspace__workspaceEdit__metadataSupport=True))
    uri = (tmp_path / "net.py").as_uri()
    client.open(uri, NET)
    client.state(uri)
    line, column = place_of(NET, "F.gelu")
    scope = {"kind": "expression", "span": [line + 1, column, line + 1, column + len("F.gelu(self.fc(x))")]}
    asked = []
    client.answers["workspace/applyEdit"] = lambda params: asked.append(params) or {"applied": False}
    client.command("t2j.convert", uri, scope)
    client.command("t2j.convertFile", uri)
    client.command("t2j.convertFiles", [uri])
    assert [bool((one.get("metadata") or {}).get("isRefactoring")) for one in asked] == [False, True, True]


def test_many_files_are_written_by_the_server_for_a_client_that_cant(
    start: Callable[..., Client], tmp_path: Path
) -> None:
    client = start(capabilities(workspace__workspaceEdit=None))
    uris = []
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text(NET)
        uris.append((tmp_path / f"{name}.py").as_uri())
    assert client.command("t2j.convertFiles", uris) == {"converted": uris, "skipped": []}
    assert "class Net(nnx.Module)" in (tmp_path / "b_jax.py").read_text()


def test_a_bulk_conversion_that_is_cancelled_writes_nothing(lent: Callable[..., Client], tmp_path: Path) -> None:
    client = lent()
    editor = Editor(client)
    uris = []
    for number in range(200):
        (tmp_path / f"net{number}.py").write_text(NET)
        uris.append((tmp_path / f"net{number}.py").as_uri())
    identity = client.start("workspace/executeCommand", {"command": "t2j.convertFiles", "arguments": [uris]})

    def begun(params: Any) -> bool:
        return params["value"]["kind"] in ("begin", "report")

    token = client.wait_notification("$/progress", begun)["token"]
    client.notify("window/workDoneProgress/cancel", {"token": token})
    with pytest.raises(ServerError, match="cancelled, and nothing was written"):
        client.result(identity)
    assert not editor.edits and not list(tmp_path.glob("*_jax.py"))


def test_an_edit_that_the_editor_refuses_converts_nothing(lent: Callable[..., Client], tmp_path: Path) -> None:
    client = lent()
    client.answers["workspace/applyEdit"] = lambda params: {"applied": False, "failureReason": "not now"}
    (tmp_path / "net.py").write_text(NET)
    result = client.command("t2j.convertFiles", [(tmp_path / "net.py").as_uri()])
    assert result["converted"] == [] and skipped(result) == {"net.py": "not now"}
    with pytest.raises(ServerError, match="not a list"):
        client.command("t2j.convertFiles", "net.py")
