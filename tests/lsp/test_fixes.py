"""Fixed bugs over a real server: offered on a gap and on a difference, and the user's own kept where they want that."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from t2j_lsp.lsp.settings import from_client, from_toml, settings_of

from .client import Client, ServerError, capabilities, span
from .pairs import TIMEOUT, Pair
from .programs import line_of, place_of

GAPS = """import torch


def penalty(f, x):
    (grad,) = torch.autograd.grad(f(x).sum(), x)
    return grad


def traced(f, x):
    return torch.jit.trace(f, x)
"""
RIGHT, WRONG = "gelu(self.fc(x), approximate=False)", "gelu(self.fc(x))"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Iterator[Client]:
    settings = {"check": {"enable": False}, "fixes": {"keep": True}}
    with Client(log=tmp_path_factory.mktemp("fixes") / "log", env={"T2J_DATA": str(data)}) as client:
        client.settings = settings
        client.initialize(None, None, {"trusted": True, "commandLinks": True, "settings": settings})
        yield client


def looked_up(client: Client) -> None:
    """Wait until all that was to be looked up before is: questions are answered one after the other."""
    client.command("t2j.fixedBugs", [])


def hover_text(client: Client, uri: str, line: int, column: int) -> str:
    hover = client.hover(uri, line, column)
    return "" if hover is None else str(hover["contents"]["value"])


def ids_in(text: str) -> list[str]:
    """The ids in the link of a hover."""
    link = text[text.index("command:t2j.showFixes?") :].partition("?")[2].partition(")")[0]
    (ids,) = json.loads(unquote(link))
    return list(ids)


def test_a_gap_offers_fixed_bugs_of_its_name_and_another_none(start: Callable[..., Client], uri: str) -> None:
    client = start(options={"commandLinks": True})
    client.open(uri, GAPS)
    client.state(uri, complete=True)
    looked_up(client)
    line, column = place_of(GAPS, "torch.autograd.grad")
    text = hover_text(client, uri, line, column + 10)
    assert "mistakes like this were fixed](command:t2j.showFixes?" in text
    shown = client.command("t2j.fixedBugs", ids_in(text))
    assert [row["id"] for row in shown["fixes"]] == ids_in(text) and len(shown["fixes"]) > 1
    assert all(row["Error_Code"] and row["Fixed_Code"] and row["Fix_info"] for row in shown["fixes"])
    assert "  faulty " in shown["text"] and shown["fixes"][0]["Fix_info"].split()[0] in shown["text"]
    other, place = place_of(GAPS, "torch.jit.trace")
    assert "manual" in hover_text(client, uri, other, place + 10)
    assert "mistake" not in hover_text(client, uri, other, place + 10)


def test_the_offer_to_ask_a_model_counts_the_same_fixed_bugs(start: Callable[..., Client], tmp_path: Path) -> None:
    settings = {"check": {"enable": False}, "model": {"names": ["small"]}}
    client = start(options={"commandLinks": True, "trusted": True, "settings": settings})
    client.settings = settings
    uri = (tmp_path / "gaps.py").as_uri()
    client.open(uri, GAPS)
    client.state(uri, complete=True)
    looked_up(client)

    def title(needle: str) -> str:
        line, column = place_of(GAPS, needle)
        result = [a for a in client.actions(uri, span(line, column + 10)) if a["title"].startswith("Ask")]
        return str(result[0]["title"])

    line, column = place_of(GAPS, "torch.autograd.grad")
    count = len(ids_in(hover_text(client, uri, line, column + 10)))
    assert title("torch.autograd.grad") == f"Ask the model ({count} similar fixes found)…"
    assert title("torch.jit.trace") == "Ask the model…"


def test_a_client_without_links_is_told_the_command(start: Callable[..., Client], uri: str) -> None:
    client = start(capabilities(textDocument__hover={"contentFormat": ["plaintext"]}))
    client.open(uri, GAPS)
    client.state(uri, complete=True)
    looked_up(client)
    line, column = place_of(GAPS, "torch.autograd.grad")
    text = hover_text(client, uri, line, column + 10)
    (message,) = [one for one in text.splitlines() if "mistakes like this" in one]
    assert "were fixed: t2j fixes --show " in message and "command:" not in text


def test_an_edited_gap_keeps_its_offer(start: Callable[..., Client], uri: str) -> None:
    client = start(options={"commandLinks": True})
    client.open(uri, GAPS)
    client.state(uri, complete=True)
    looked_up(client)
    client.change(uri, 2, {"text": f"# a line more\n{GAPS}"})
    line, column = place_of(GAPS, "torch.autograd.grad")
    assert "mistakes like this were fixed" in hover_text(client, uri, line + 1, column + 10)


def test_a_server_without_gaps_and_differences_starts_no_process_for_them(
    start: Callable[..., Client], uri: str
) -> None:
    client = start()
    client.open(uri, "import torch\n\n\ndef f(x: torch.Tensor):\n    return torch.relu(x)\n")
    client.state(uri, complete=True)
    assert not [name for name in _children(client.process.pid) if "similar" in name]
    looked_up(client)
    assert [name for name in _children(client.process.pid) if "similar" in name]


def _children(pid: int) -> list[str]:
    """The command lines of a process's children."""
    if not os.path.isdir("/proc/self"):
        pytest.skip("processes are read from /proc, which only Linux has")
    texts = []
    for entry in Path("/proc").iterdir():
        try:
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1] if entry.name.isdigit() else ""
            if parent == str(pid):
                texts.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return texts


@pytest.mark.parametrize("wrong", ["torch", [1], None])
def test_a_wrong_list_of_ids_is_refused(shared: Client, wrong: object) -> None:
    with pytest.raises(ServerError, match="takes a list of ids"):
        shared.command("t2j.fixedBugs", wrong)


def test_an_unknown_id_is_said(shared: Client) -> None:
    with pytest.raises(ServerError, match="there is no fixed bug nothing/at-all"):
        shared.command("t2j.fixedBugs", ["nothing/at-all"])


def test_a_difference_offers_fixed_bugs_and_its_fix_becomes_one_of_them(
    trusted: Client, tmp_path: Path, data: Path
) -> None:
    pair = Pair(trusted, tmp_path)
    trusted.state(pair.uri)
    pair.convert()
    pair.replace(RIGHT, WRONG)
    line = line_of(pair.code, WRONG)
    assert "mistake" not in hover_text(trusted, pair.converted, line, 12)

    assert trusted.command("t2j.check", pair.uri, "Net", timeout=TIMEOUT)["verdict"] == "different"
    looked_up(trusted)
    text = hover_text(trusted, pair.converted, line, 12)
    assert re.search(r"mistakes? like this (was|were) fixed\]\(command:t2j\.showFixes\?", text)
    identities = ids_in(text)
    assert identities and all(one.endswith("/gelu-approximation") for one in identities)
    assert ids_in(hover_text(trusted, pair.uri, *place_of(pair.text, "F.gelu"))) == identities

    message = trusted.command("t2j.explainDifference", pair.uri, "Net", timeout=TIMEOUT)
    assert [row["id"] for row in message["similar"]] == identities
    assert all(row["Fixed_Code"] and row["yours"] is False for row in message["similar"])
    assert re.search(r"mistakes? like this (was|were) fixed:\n\ngelu approximation", message["text"])
    assert not (data / "fixes").exists()

    since = trusted.now
    pair.replace(WRONG, RIGHT)
    assert "mistake" not in hover_text(trusted, pair.converted, line, 12)
    assert trusted.command("t2j.check", pair.uri, "Net", timeout=TIMEOUT)["verdict"] == "equivalent"
    said = trusted.wait_notification("window/logMessage", lambda p: "is kept" in p["message"], since)["message"]
    (kept,) = (data / "fixes").iterdir()
    assert kept.stem in said and str(tmp_path) not in kept.read_text()
    bug = json.loads(kept.read_text())["Errors"][0]
    assert WRONG in bug["Error_Code"] and RIGHT in bug["Fixed_Code"] and bug["Origin"] == "captured"

    pair.replace(RIGHT, WRONG)
    message = trusted.command("t2j.explainDifference", pair.uri, "Net", timeout=TIMEOUT)
    assert kept.stem in [row["id"] for row in message["similar"] if row["yours"]]


def test_nothing_is_kept_unless_it_is_wanted(trusted: Client, tmp_path: Path, data: Path) -> None:
    before = sorted((data / "fixes").iterdir()) if (data / "fixes").exists() else []
    trusted.settings = {"check": {"enable": False}}
    trusted.notify("workspace/didChangeConfiguration", {"settings": None})
    pair = Pair(trusted, tmp_path)
    trusted.state(pair.uri)
    pair.convert()
    pair.replace(RIGHT, WRONG)
    assert trusted.command("t2j.check", pair.uri, "Net", timeout=TIMEOUT)["verdict"] == "different"
    pair.replace(WRONG, RIGHT)
    assert trusted.command("t2j.check", pair.uri, "Net", timeout=TIMEOUT)["verdict"] == "equivalent"
    looked_up(trusted)
    assert (sorted((data / "fixes").iterdir()) if (data / "fixes").exists() else []) == before


def test_keeping_fixes_is_off_unless_a_project_or_the_editor_turns_it_on() -> None:
    project, editor = (
        from_toml("[tool.t2j]\nkeep-fixes = true\n", "pyproject.toml"),
        from_client({"fixes": {"keep": False}}),
    )
    assert [settings_of(*layers).keep_fixes for layers in ((), (project,), (project, editor))] == [False, True, False]
