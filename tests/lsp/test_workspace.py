"""The state of a workspace's migration: asked for, kept up with what changes, and without running anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from t2j_lsp.migration.state import STATES
from t2j_lsp.migration.verdict_store import record

from .client import Client, Json, ServerError
from .programs import NET

TRAP = NET + '\nraise SystemExit("nothing of the workspace runs")\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A file with three torch symbols, one without torch, one that is to be left out."""
    root = tmp_path / "project"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg" / "net.py").write_text(TRAP)
    (root / "plain.py").write_text("def f(x):\n    return x\n")
    (root / "left_out.py").write_text("# t2j: ignore-file\n" + NET)
    (root / ".venv").mkdir()
    (root / ".venv" / "inner.py").write_text(NET)
    return root


def the_file(answer: Json) -> Json:
    (result,) = answer["files"]
    assert isinstance(result, dict)
    return result


def states(answer: Json) -> dict[str, str]:
    return {s["name"]: s["state"] for s in the_file(answer)["symbols"]}


def ask(client: Client, refresh: bool = False) -> Json:
    return client.request("t2j/workspace", {"refresh": refresh})  # type: ignore[no-any-return]


def changed(client: Client, since: int) -> Any:
    return client.wait_notification("t2j/workspaceChanged", since=since)


def changed_on_disk(client: Client, path: Path, kind: int) -> None:
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": path.as_uri(), "type": kind}]})


CREATED, CHANGED, DELETED = 1, 2, 3


def test_files_symbols_and_states_are_listed_in_a_workspace_that_is_not_trusted(
    start: Callable[..., Client], project: Path
) -> None:
    client = start(root=project)
    answer = ask(client)
    assert answer["complete"] and answer["problems"] == []
    assert answer["counts"] == {state: int(state == "not started") for state in STATES}
    file = the_file(answer)
    symbols = file.pop("symbols")
    assert file == {
        "uri": (project / "pkg" / "net.py").as_uri(),
        "path": "pkg/net.py",
        "folder": project.as_uri(),
        "state": "not started",
        "converted": None,
        "gaps": 0,
        "coverage": None,
    }
    assert [(s["name"], s["kind"], s["line"], s["gaps"], s["reason"]) for s in symbols] == [
        ("Net", "class", 5, 0, None),
        ("watch", "function", 15, 0, None),
        ("order", "function", 20, 0, None),
    ]


def test_a_conversion_a_verdict_and_an_edit_change_the_states(start: Callable[..., Client], project: Path) -> None:
    client = start(root=project)
    source, target = project / "pkg" / "net.py", project / "pkg" / "net_jax.py"
    ask(client)
    since = client.now
    preview = client.command("t2j.previewFile", source.as_uri())
    target.write_text(preview["code"])
    changed_on_disk(client, target, CREATED)
    changed(client, since)
    answer = ask(client)
    assert states(answer) == {"Net": "converted", "watch": "gaps", "order": "converted"}
    assert the_file(answer)["state"] == "gaps" and the_file(answer)["gaps"] == 1
    assert the_file(answer)["converted"] == target.as_uri()
    (watch,) = (s for s in the_file(answer)["symbols"] if s["name"] == "watch")
    assert watch["gaps"] == 1 and "JAX arrays" in watch["reason"]

    stages = {"spec": {"result": "pass", "max_abs_err": 0.0, "max_rel_err": 0.0}}
    verdicts = [
        {"name": name, "verdict": verdict, "reason": None, "stages": stages, "divergence": divergence}
        for name, verdict, divergence in (
            ("Net", "equivalent", None),
            ("order", "different", {"torch": None, "jax": None, "what": "the value of y"}),
        )
    ]
    record(source, source.read_text(), target, target.read_text(), verdicts, device="cpu", version="0")
    checked = states(ask(client, refresh=True))
    assert checked == {"Net": "equivalent", "watch": "gaps", "order": "different"}

    # An edit that is not even saved: the verdicts are about another text.
    since = client.now
    client.open(target.as_uri(), target.read_text() + "\n# edited\n")
    changed(client, since)
    assert states(ask(client)) == {"Net": "converted", "watch": "gaps", "order": "converted"}
    since = client.now
    client.notify("textDocument/didClose", {"textDocument": {"uri": target.as_uri()}})
    changed(client, since)
    assert states(ask(client)) == checked

    since = client.now
    target.unlink()
    changed_on_disk(client, target, DELETED)
    changed(client, since)
    assert set(states(ask(client)).values()) == {"not started"}


def test_verdicts_of_a_check_are_known_to_the_next_server(start: Callable[..., Client], tmp_path: Path) -> None:
    source, target = tmp_path / "cat.py", tmp_path / "cat_jax.py"
    source.write_text("import torch\n\n\ndef f(a: torch.Tensor) -> torch.Tensor:\n    return a * 2\n")
    target.write_text("import jax\n\n\ndef f(a: jax.Array) -> jax.Array:\n    return a * 2\n")
    client = start(root=tmp_path, options={"trusted": True, "settings": {"check": {"stage": "spec"}}})
    assert the_file(ask(client))["state"] == "converted"
    since = client.now
    client.open(source.as_uri(), source.read_text())
    result = client.command("t2j.check", source.as_uri(), timeout=180)
    assert result["verdict"] == "equivalent"
    changed(client, since)
    assert the_file(ask(client))["state"] == "equivalent"
    client.shutdown()
    again = start(root=tmp_path)
    assert the_file(ask(again))["state"] == "equivalent"
    # The text in the editor counts, and not the file under it.
    again.open(target.as_uri(), target.read_text().replace("* 2", "* 3"))
    assert the_file(ask(again))["state"] == "converted"


def test_text_that_does_not_parse_keeps_the_symbols_it_had(start: Callable[..., Client], project: Path) -> None:
    client = start(root=project)
    source = project / "pkg" / "net.py"
    before = states(ask(client))
    client.open(source.as_uri(), TRAP + "\ndef half(:\n")
    answer = ask(client)
    assert states(answer) == before
    assert any("net.py can't be parsed" in problem for problem in answer["problems"])


def test_every_workspace_folder_has_its_own_suffix(start: Callable[..., Client], tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, suffix in ((one, "_jax"), (two, "_nnx")):
        folder.mkdir()
        (folder / "net.py").write_text(NET)
        (folder / f"net{suffix}.py").write_text("class Net: ...\n")
    (two / "pyproject.toml").write_text('[tool.t2j]\nsuffix = "_nnx"\n')
    client = start(folders=(one, two))
    answer = ask(client)
    assert [f["folder"] for f in answer["files"]] == [one.as_uri(), two.as_uri()]
    assert [f["converted"] for f in answer["files"]] == [(one / "net_jax.py").as_uri(), (two / "net_nnx.py").as_uri()]


def test_a_server_without_folders_has_nothing_to_list(shared: Client) -> None:
    answer = ask(shared)
    assert answer["files"] == [] and answer["complete"]


def test_an_error_inside_the_survey_is_one_line_and_the_next_answer_comes(
    start: Callable[..., Client], project: Path
) -> None:
    # A folder name that no file system takes.
    client = start(folders=(project,))
    bad = {"uri": "file:///nul%00byte", "name": "bad"}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [bad], "removed": []}})
    with pytest.raises(ServerError, match=r"an error inside t2j: ValueError at \w+\.py:\d+"):
        ask(client)
    client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [bad]}})
    assert the_file(ask(client))["path"] == "pkg/net.py"
