"""Verdicts that outlive the server: shown when a file is opened again, stale at the first edit, not run again."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from t2j_lsp.migration.verdict_store import load

from .client import Client
from .pairs import TIMEOUT, Pair, different
from .programs import line_of

SPEC = {"check": {"stage": "spec", "delay": 0.05}}
SOURCE = """import torch


def scale(x: torch.Tensor):
    return x * 3


def shift(x: torch.Tensor):
    return x + 1
"""
WRONG = ("x * 3", "x * 4")


@pytest.fixture
def serve(start: Callable[..., Client]) -> Callable[..., Client]:
    def begin(trusted: bool = True, settings: Any = SPEC) -> Client:
        client = start(options={"trusted": trusted, "settings": settings})
        client.settings = settings
        return client

    return begin


def converted_pair(client: Client, folder: Path, code: str | None = None) -> Pair:
    """A pair on disk and open: the conversion that the rules make, or another one."""
    pair = Pair(client, folder, SOURCE)
    client.state(pair.uri)
    since = client.now
    pair.convert()
    pair.checked(since)
    if code is not None:
        since = client.now
        pair.replace(*WRONG)
        (folder / "net_jax.py").write_text(pair.code)
        pair.checked(since, "different")
    return pair


def titles(client: Client, uri: str) -> list[str]:
    client.state(uri)
    lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    return [lens["command"]["title"] for lens in lenses]


def no_check_runs(client: Client) -> bool:
    """Whether nothing was checked, and nothing is about to be: what is asked for now would come behind it."""
    begun = [m for m in client.messages if m.get("method") == "t2j/status" and m["params"]["state"] == "checking"]
    return not begun and client.command("t2j.debugInfo")["processes"]["check"] is None


def asked_for(client: Client, pair: Pair, name: str) -> list[str]:
    """The files and objects that were checked, in order, once an explicit check has ended."""
    client.command("t2j.check", pair.uri, name, timeout=TIMEOUT)
    steps = [m["params"]["value"].get("message") for m in client.messages if m.get("method") == "$/progress"]
    return [step for step in steps if step and step.startswith("checking ")]


def test_a_difference_is_shown_again_where_nothing_may_run(serve: Callable[..., Client], tmp_path: Path) -> None:
    first = serve(settings={"check": {"stage": "numeric", "delay": 0.05}})
    pair = converted_pair(first, tmp_path, "wrong")
    before = titles(first, pair.uri)
    (mistake,) = different(first, pair.converted, 0)
    assert first.shutdown() == 0

    client = serve(trusted=False)
    since = client.now
    client.open(pair.uri, SOURCE)
    report = client.wait_notification("t2j/checked", since=since)
    assert (report["verdict"], report["stale"], report["device"]) == ("different", False, "cpu")
    assert {o["name"]: o["verdict"] for o in report["objects"]} == {"scale": "different", "shift": "equivalent"}
    (place,) = different(client, pair.uri, since)
    assert place["range"]["start"]["line"] == line_of(SOURCE, "x * 3")
    client.open(pair.converted, pair.code)
    (again,) = different(client, pair.converted, since)
    assert {k: again[k] for k in ("range", "message")} == {k: mistake[k] for k in ("range", "message")}
    state = client.state(pair.uri)
    covered = "1 of 2 functions equivalent"
    assert state["check"] == {"verdict": "different", "coverage": covered, "stale": False, "problem": None}
    assert {d["name"]: d["verdict"] for d in state["definitions"]} == {"scale": "different", "shift": "equivalent"}
    verdicts = [title for title in titles(client, pair.uri) if title[0] in "✓≠"]
    assert verdicts and verdicts == [title for title in before if title[0] in "✓≠"]
    assert no_check_runs(client)

    # Stale at the first edit, of either file.
    since = client.now
    client.change(pair.converted, 2, {"text": pair.code + "\n# edited\n"})
    assert different(client, pair.converted, since, verdict=False) == []
    assert client.state(pair.uri)["check"]["stale"]
    assert all(title.endswith("edited since") for title in titles(client, pair.uri) if title[0] in "✓≠")
    # Thrown away, and opened as it is on disk: that text was checked.
    client.notify("textDocument/didClose", {"textDocument": {"uri": pair.converted}})
    client.open(pair.converted, pair.code)
    assert client.state(pair.uri)["check"]["verdict"] == "different"


def test_what_is_known_is_not_run_again_on_open(serve: Callable[..., Client], tmp_path: Path) -> None:
    first = serve()
    pair = converted_pair(first, tmp_path)
    assert first.shutdown() == 0
    client = serve(settings={"check": {"stage": "spec", "delay": 0}})
    client.open(pair.uri, SOURCE)
    client.open(pair.converted, pair.code)
    assert client.state(pair.uri)["check"]["verdict"] == "equivalent"
    assert no_check_runs(client)
    # Trust that comes anew asks no more than an open does, and an explicit check always runs.
    client.notify("t2j/didChangeTrust", {"trusted": True})
    assert asked_for(client, pair, "shift") == ["checking shift"]
    # What is edited is checked in the background as ever.
    since = client.now
    pair.client = client
    pair.replace(*WRONG)
    assert pair.checked(since)["verdict"] in ("equivalent", "different")


CHANGES = ("stage", "text", "neighbour", "missing")
FACTOR = "import torch\nfrom factor import FACTOR\n"
OF_A_NEIGHBOUR = SOURCE.replace("import torch\n", FACTOR).replace("* 3", "* FACTOR")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pair]:
    """A pair for each change, with verdicts that a server has kept which has ended since."""
    pairs: dict[str, Pair] = {}
    with Client(log=tmp_path_factory.mktemp("server") / "log") as client:
        client.settings = SPEC
        client.initialize(options={"trusted": True, "settings": SPEC})
        for change in CHANGES:
            folder = tmp_path_factory.mktemp(change)
            (folder / "factor.py").write_text("FACTOR = 3\n")
            pair = pairs[change] = Pair(client, folder, OF_A_NEIGHBOUR)
            client.state(pair.uri)
            if change == "missing":
                pair.code = client.command("t2j.previewFile", pair.uri)["code"]
                (folder / "net_jax.py").write_text(pair.code)
                client.command("t2j.check", pair.uri, "scale", timeout=TIMEOUT)
            else:
                since = client.now
                pair.convert()
                pair.checked(since)
        assert client.shutdown() == 0
    return pairs


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Client]]:
    """``later(stage)``: a server that starts after `known`, one for all tests with the same settings."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def begin(stage: str) -> Client:
            client = stack.enter_context(Client(log=tmp_path_factory.mktemp("server") / "log"))
            client.settings = {"check": {"stage": stage, "delay": 0}}
            client.initialize(options={"trusted": True, "settings": client.settings})
            return client

        yield begin


@pytest.mark.parametrize("change", CHANGES)
def test_what_may_come_out_otherwise_is_run_again(
    known: dict[str, Pair], later: Callable[[str], Client], change: str
) -> None:
    pair = known[change]
    stored = load(pair.path, pair.path.with_name("net_jax.py"))
    assert stored is not None and [Path(path).name for path in stored.neighbours] == ["factor.py"]

    client = later("numeric" if change == "stage" else "spec")
    if change == "neighbour":
        pair.path.with_name("factor.py").write_text("FACTOR = 4\n")
    code = pair.code + ("\n# edited\n" if change == "text" else "")
    client.open(pair.uri, pair.text)
    shown = {d["name"]: d["verdict"] for d in client.state(pair.uri)["definitions"]}
    assert shown == {
        "scale": "equivalent" if change in ("stage", "text", "missing") else None,
        "shift": "equivalent" if change in ("stage", "text") else None,
    }
    client.wait_notification("t2j/status", lambda p: p["state"] != "starting")
    since = client.now
    client.open(pair.converted, code)
    begun = client.wait_notification("t2j/status", lambda p: p["state"] == "checking", since, TIMEOUT)
    assert begun["uri"] == pair.uri
    report = client.wait_notification(
        "t2j/checked", lambda p: p["uri"] == pair.uri and len(p["objects"]) == 2, since, TIMEOUT
    )
    assert (report["verdict"], report["stale"]) == ("equivalent", False)
