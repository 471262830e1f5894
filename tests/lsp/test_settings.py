"""Settings: where they come from, which win, what a repository may not set, and that changes hold at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from t2j_lsp.lsp.paths import converted_path, source_path, to_path, to_uri
from t2j_lsp.lsp.settings import (
    CLIENT_NAMES,
    CLIENT_ONLY,
    Read,
    Settings,
    find_pyproject,
    from_client,
    from_pyproject,
    from_toml,
    settings_of,
)

from .client import Client, capabilities, span
from .programs import NET

DOCS = Path(__file__).resolve().parents[2] / "docs" / "settings.md"


def test_the_client_wins_over_the_project_and_the_project_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[tool.t2j]\nsuffix = "_flax"\nx64 = true\nignore = ["close"]\ncheck-stage = "numeric"\n')
    settings = settings_of(from_pyproject(file), from_client({"x64": False, "check": {"delay": 3}}))
    assert (settings.suffix, settings.x64, settings.ignore) == ("_flax", False, ("note",))
    assert (settings.check_stage, settings.check_delay, settings.target) == ("numeric", 3, "nnx")


def test_a_repository_cant_choose_what_is_run(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[tool.t2j]\ntorch-python = "/tmp/evil"\njax_python = "/tmp/evil"\n')
    read = from_pyproject(file)
    assert read.values == {} and len(read.problems) == 2
    assert from_client({"check": {"torchPython": "/usr/bin/python3"}}).values == {"torch_python": "/usr/bin/python3"}


@pytest.mark.parametrize(
    "data",
    [
        {"target": "tensorflow"},
        {"x64": "yes"},
        {"check": {"delay": -1}},
        {"convert.suffix": "../x"},
        {"ignore": "close"},
    ],
)
def test_what_cant_be_used_is_said_and_the_rest_holds(data: dict[str, object]) -> None:
    read = from_client({**data, "helpers": "module"})
    assert read.values == {"helpers": "module"} and len(read.problems) == 1


@pytest.mark.parametrize(
    ("line", "key", "said"),
    [
        ('suffx = "_flax"', "suffx", "there is no setting 'suffx': did you mean 'suffix'?"),
        ('check_stagee = "spec"', "check_stagee", "there is no setting 'check_stagee': did you mean 'check-stage'?"),
        (
            "codeLens.enable = true",
            "codeLens.enable",
            "there is no setting 'codeLens.enable': did you mean 'code-lens'?",
        ),
        ("zzz = 1", "zzz", "there is no setting 'zzz'"),
        (
            'torch-python = "/tmp/evil"',
            "torch-python",
            "'torch-python' is not taken from a project: set it in the editor",
        ),
        ('x64 = "yes"', "x64", "'x64' has to be true or false"),
        ('helpers = "inside"', "helpers", '\'helpers\' has to be "auto" or "inline" or "module" or "import"'),
        ("check-delay = -1", "check-delay", "'check-delay' has to be a number of seconds, 0 or more"),
        ('ignore = "note"', "ignore", "'ignore' has to be a list of texts"),
        ('suffix = "a/b"', "suffix", "'suffix' has to be a text without / \\ and :"),
    ],
)
def test_what_is_wrong_in_a_project_is_said(line: str, key: str, said: str) -> None:
    (problem,) = from_toml(f"[tool.t2j]\n{line}\n", "pyproject.toml").problems
    assert (problem.key, problem.text, str(problem)) == (key, said, f"pyproject.toml: {said}")


def test_forms_that_are_none_are_no_settings(tmp_path: Path) -> None:
    assert from_client(None) == from_client([]) == from_client({"target": None}) == Read()
    assert from_pyproject(tmp_path / "missing") == Read()
    (tmp_path / "broken").write_text("[tool")
    assert from_pyproject(tmp_path / "broken").problems
    (tmp_path / "odd").write_text("tool = 3\n")
    assert from_pyproject(tmp_path / "odd").problems or not from_pyproject(tmp_path / "odd").values


def test_the_nearest_project_file_inside_the_folder_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    assert find_pyproject(inner / "x.py", (tmp_path,)) == tmp_path / "pyproject.toml"
    assert find_pyproject(inner / "x.py", (tmp_path / "a",)) is None
    (tmp_path / "a" / "pyproject.toml").touch()
    assert find_pyproject(inner / "x.py", (tmp_path,)) == tmp_path / "a" / "pyproject.toml"


def test_every_setting_has_a_name_for_clients_and_stands_on_the_page() -> None:
    assert set(CLIENT_NAMES.values()) == set(vars(Settings()))
    text = DOCS.read_text(encoding="utf-8")
    for client, own in CLIENT_NAMES.items():
        assert f"`t2j.{client}`" in text, client
        if own not in CLIENT_ONLY:
            assert f"`{own.replace('_', '-')}`" in text, own


@pytest.mark.parametrize("uri", ["file:///c%3A/a%20b/n.py", "file:///C:/a b/n.py", "file:///c:/a%20b/n.py"])
def test_drive_letters_have_one_spelling(uri: str) -> None:
    path = to_path(uri)
    assert path is not None and path.as_posix() == "C:/a b/n.py"
    assert to_uri(Path("/x/ü n.py")) == "file:///x/%C3%BC%20n.py"
    assert to_path("untitled:Untitled-1") is None


def test_a_conversion_knows_its_source() -> None:
    assert converted_path(Path("/a/net.py"), "_jax") == Path("/a/net_jax.py")
    assert source_path(Path("/a/net_jax.py"), "_jax") == Path("/a/net.py")
    assert source_path(Path("/a/net.py"), "_jax") is None


# --- live -------------------------------------------------------------------------------------------------------------


def codes(client: Client, uri: str, since: int) -> set[str]:
    return {d["code"] for d in client.diagnostics(uri, since=since)}


def test_changed_settings_of_the_client_hold_without_a_restart(start: Callable[..., Client]) -> None:
    client = start()
    client.open("untitled:a.py", NET)
    assert codes(client, "untitled:a.py", 0) == {"t2j-refused", "t2j-note"}
    since = client.now
    client.settings = {"diagnostics": {"ignore": ["close"]}}
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    assert codes(client, "untitled:a.py", since) == {"t2j-refused"}
    since = client.now
    client.settings = {"diagnostics.enable": False, "hover": {"enable": False}, "codeLens": {"enable": False}}
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    assert codes(client, "untitled:a.py", since) == set()
    assert client.hover("untitled:a.py", 11, 14) is None
    assert client.request("textDocument/codeLens", {"textDocument": {"uri": "untitled:a.py"}}) == []


def test_a_client_that_sends_its_settings_along_is_understood(start: Callable[..., Client]) -> None:
    client = start(capabilities(workspace__configuration=None), {"settings": {"diagnostics": {"ignore": ["refused"]}}})
    client.open("untitled:a.py", NET)
    assert codes(client, "untitled:a.py", 0) == {"t2j-note"}
    since = client.now
    client.notify("workspace/didChangeConfiguration", {"settings": {"t2j": {"diagnostics": {"ignore": []}}}})
    assert codes(client, "untitled:a.py", since) == {"t2j-refused", "t2j-note"}


def test_a_changed_project_file_holds_for_its_folder_alone(start: Callable[..., Client], tmp_path: Path) -> None:
    folders = (tmp_path / "one", tmp_path / "two")
    for folder in folders:
        folder.mkdir()
        (folder / "net.py").write_text(NET)
    client = start(folders=folders)
    client.wait(lambda m: m.get("method") == "client/registerCapability")
    one, two = ((folder / "net.py").as_uri() for folder in folders)
    for uri in (one, two):
        client.open(uri, NET)
        client.state(uri)
    project = folders[0] / "pyproject.toml"
    project.write_text('[tool.t2j]\nignore = ["refused"]\nsuffix = "_flax"\n')
    since = client.now
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": project.as_uri(), "type": 1}]})
    assert codes(client, one, since) == {"t2j-note"}
    (action,) = client.actions(one, span(0, 0), only=["source.convert.t2j"])
    assert "net_flax.py" in action["title"]
    (other,) = client.actions(two, span(0, 0), only=["source.convert.t2j"])
    assert "net_jax.py" in other["title"]


def test_folders_come_and_go(start: Callable[..., Client], tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.t2j]\nsuffix = "_flax"\n')
    client = start()
    inner = tmp_path / "src"
    inner.mkdir()
    uri = (inner / "net.py").as_uri()
    client.open(uri, NET)
    client.state(uri)
    (before,) = client.actions(uri, span(0, 0), only=["source.convert.t2j"])
    event = {"added": [{"uri": tmp_path.as_uri(), "name": "x"}], "removed": []}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    (after,) = client.actions(uri, span(0, 0), only=["source.convert.t2j"])
    assert ("net_jax.py" in before["title"], "net_flax.py" in after["title"]) == (True, True)


def test_wrong_settings_are_diagnostics_of_the_project_file(start: Callable[..., Client], tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    lines = ["[project]", 'description = """', "suffx = 1", '"""', "", "[tool.t2j]", 'suffx = "_flax"', "  x64 = 3", ""]
    project.write_text("\n".join([*lines, "[tool.t2j.check]", "delay = 2", "[tool.other]", "x64 = 4", ""]))
    uri, net = project.as_uri(), (tmp_path / "net.py").as_uri()
    client = start(folders=(tmp_path,))
    client.open(net, NET)
    result = {d["message"]: d for d in client.diagnostics(uri)}
    assert {m.partition(":")[0]: d["range"] for m, d in result.items()} == {
        "there is no setting 'suffx'": span(6, 0, 6, 5),
        "'x64' has to be true or false": span(7, 2, 7, 5),
        "there is no setting 'check.delay'": span(10, 0, 10, 5),
    }
    assert {(d["code"], d["severity"]) for d in result.values()} == {("t2j-setting", 2)}
    assert all(d["codeDescription"]["href"].endswith("findings.md#t2j-setting") for d in result.values())

    since = client.now
    project.write_text('[tool.t2j]\nsuffix = "_flax\n')
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 2}]})
    (broken,) = client.diagnostics(uri, since=since)
    assert broken["range"]["start"]["line"] == 1 and broken["message"].startswith("line 2: ")

    # While it is open, the text in the editor counts.
    since = client.now
    client.open(uri, '[tool.t2j]\n"sufix" = 1\n', language="toml")
    (typed,) = client.diagnostics(uri, since=since)
    assert typed["range"] == span(1, 0, 1, 7)
    since = client.now
    client.change(uri, 2, {"text": '[tool.t2j]\nsuffix = "_flax"\n'})
    assert client.diagnostics(uri, 2, since) == []
    since = client.now
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert [d["message"] for d in client.diagnostics(uri, since=since)] == [broken["message"]]
    since = client.now
    project.unlink()
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 3}]})
    assert client.diagnostics(uri, since=since) == []
