"""Background checks over a real server with real workers: trust, verdicts, stale ones, cancelling, killed processes."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .client import Client, ServerError, span
from .pairs import SOURCE, TIMEOUT, Pair, different
from .programs import line_of

SLOW = (
    SOURCE
    + """

# t2j: x=f32[2, 3]
def slow(x: torch.Tensor):
    for _ in range(10**9):
        x = torch.sin(x)
    return x
"""
)


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server in a trusted workspace, whose workers stay warm for this module."""
    with Client(log=tmp_path_factory.mktemp("trusted") / "log") as client:
        client.settings = {"check": {"delay": 0.05}, "inlayHints": {"enable": True}}
        client.initialize(None, None, {"trusted": True, "settings": client.settings})
        yield client


def test_nothing_runs_in_a_workspace_that_is_not_trusted(shared: Client, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    text = SOURCE + f"\nopen({str(marker)!r}, 'w').close()\n"
    pair = Pair(shared, tmp_path, text)
    shared.state(pair.uri)
    pair.convert()
    with pytest.raises(ServerError, match="not trusted"):
        shared.command("t2j.check", pair.uri)
    shared.notify("t2j/didChangeTrust", {"trusted": "yes"})
    with pytest.raises(ServerError, match="not trusted"):
        shared.command("t2j.check", pair.uri)
    assert not marker.exists()
    assert shared.command("t2j.debugInfo")["processes"]["check"] is None


def test_a_session_from_conversion_to_a_planted_mistake_and_back(trusted: Client, tmp_path: Path) -> None:
    pair = Pair(trusted, tmp_path)
    trusted.state(pair.uri)
    since = trusted.now
    pair.convert()
    report = pair.checked(since)
    assert (report["verdict"], report["device"], report["stale"]) == ("equivalent", "cpu", False)
    assert {o["name"]: o["stages"]["behavioral"]["result"] for o in report["objects"]}["Net"] == "pass"
    titles = [lens["command"]["title"] for lens in lenses(trusted, pair.uri)]
    expected = "✓ checked: outputs, gradients, 3 training steps · worst error"
    assert any(t.startswith(expected) and t.endswith("CPU") for t in titles), titles
    assert titles[0] == "✓ 1 of 1 class equivalent; 1 of 1 function equivalent"
    hints = trusted.request("textDocument/inlayHint", {"textDocument": {"uri": pair.uri}, "range": span(0, 0, 99, 0)})
    labels = {h["position"]["line"]: h["label"] for h in hints}
    assert labels[line_of(SOURCE, "y = F.gelu")].endswith("4)") and line_of(SOURCE, "return x * 3") in labels

    since = trusted.now
    pair.replace(", approximate=False", "")
    line = line_of(pair.code, "jax.nn.gelu")
    (mistake,) = different(trusted, pair.converted, since)
    assert mistake["range"]["start"]["line"] == line and mistake["severity"] == 1
    (related,) = mistake["relatedInformation"]
    assert related["location"]["uri"] == pair.uri
    assert related["location"]["range"]["start"]["line"] == line_of(SOURCE, "F.gelu")
    assert f"net.py, line {line_of(SOURCE, 'F.gelu') + 1}:" in mistake["message"]
    assert mistake["codeDescription"]["href"].endswith("docs/findings.md#t2j-differs")
    (other,) = different(trusted, pair.uri, since)
    assert other["range"]["start"]["line"] == line_of(SOURCE, "F.gelu")
    # One mistake is one error: the PyTorch line only refers to it.
    assert other["severity"] == 4 and f"net_jax.py, line {line + 1}:" in other["message"]
    assert other["relatedInformation"][0]["location"]["range"]["start"]["line"] == line
    said = [lens["command"]["title"] for lens in lenses(trusted, pair.uri)]
    expected = f"≠ differs: outputs in evaluation mode · net_jax.py:{line + 1} · CPU"
    assert expected in said, said

    offered = trusted.actions(pair.converted, mistake["range"], diagnostics=[mistake])
    fix = next(a for a in offered if a["kind"] == "quickfix")
    assert fix["diagnostics"] == [mistake]
    (edit,) = trusted.resolve(fix)["edit"]["documentChanges"][0]["edits"]
    assert "approximate=False" in edit["newText"]
    since = trusted.now
    pair.replace("jax.nn.gelu(self.fc(x))", "jax.nn.gelu(self.fc(x), approximate=False)")
    # The verdict was about another text: its diagnostics go before the next check has begun.
    assert different(trusted, pair.converted, since, verdict=False) == []
    assert pair.checked(since, "equivalent")["verdict"] == "equivalent"
    covered = "1 of 1 class equivalent; 1 of 1 function equivalent"
    whole = {"verdict": "equivalent", "coverage": covered, "stale": False, "problem": None}
    assert trusted.state(pair.uri)["check"] == whole


def lenses(client: Client, uri: str) -> list[Any]:
    return client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})  # type: ignore[no-any-return]


def test_unsaved_texts_of_both_files_are_checked(trusted: Client, tmp_path: Path) -> None:
    pair = Pair(trusted, tmp_path)
    trusted.state(pair.uri)
    since = trusted.now
    trusted.change(pair.uri, 2, {"text": SOURCE.replace("x * 3", "x * 5")})
    trusted.state(pair.uri)
    pair.convert()
    assert "x * 5" in pair.code
    assert pair.checked(since)["verdict"] == "equivalent"


def test_a_file_is_converted_and_checked_by_one_action(trusted: Client, tmp_path: Path) -> None:
    text = SOURCE + "\n\ndef seed(n: int):\n    torch.manual_seed(n)\n"
    pair = Pair(trusted, tmp_path, text)
    trusted.state(pair.uri, complete=True)

    def apply(params: Any) -> Any:
        (_, made) = params["edit"]["documentChanges"]
        (tmp_path / "net_jax.py").write_text(made["edits"][0]["newText"])
        return {"applied": True}

    before = trusted.answers["workspace/applyEdit"]
    trusted.answers["workspace/applyEdit"] = apply
    try:
        (action,) = trusted.actions(pair.uri, span(0, 0), only=["source.convertAndCheck.t2j"])
        assert action["title"] == "Convert file to JAX (new file net_jax.py), and check it"
        answer = trusted.command(action["command"]["command"], *action["command"]["arguments"], timeout=TIMEOUT)
    finally:
        trusted.answers["workspace/applyEdit"] = before
    assert answer["applied"] and answer["uri"] == pair.converted
    covered = "1 of 1 class equivalent; 1 of 1 function equivalent; 1 function not run"
    assert answer["checked"]["message"] == f"net.py: unchecked: {covered}"
    assert answer["checked"]["verdict"] == "unchecked" and answer["checked"]["coverage"]["text"] == covered
    (place,) = answer["checked"]["coverage"]["not_run"]
    assert (place["name"], place["line"]) == ("seed", line_of(text, "def seed") + 1)


def test_converting_and_checking_is_refused_where_nothing_may_run(shared: Client, tmp_path: Path) -> None:
    pair = Pair(shared, tmp_path)
    shared.state(pair.uri, complete=True)
    (action,) = shared.actions(pair.uri, span(0, 0), only=["source.convertAndCheck.t2j"])
    assert action["disabled"]["reason"] == "the workspace is not trusted, and a check runs its code"
    with pytest.raises(ServerError, match="not trusted"):
        shared.command("t2j.convertAndCheck", pair.uri)
    assert not (tmp_path / "net_jax.py").exists()


def test_a_file_without_a_conversion_is_checked_against_what_it_becomes(trusted: Client, tmp_path: Path) -> None:
    pair = Pair(trusted, tmp_path)
    report = trusted.command("t2j.check", pair.uri, "scale", timeout=TIMEOUT)
    assert [(o["name"], o["verdict"]) for o in report["objects"]] == [("scale", "equivalent")]
    assert report["converted"] is None


def test_a_file_without_a_conversion_is_checked_for_the_target_that_is_set(trusted: Client, tmp_path: Path) -> None:
    caught = "        try:\n            return y * 2\n        except ValueError:\n            return y"
    (tmp_path / "pyproject.toml").write_text('[tool.t2j]\ntarget = "jax"\n')
    pair = Pair(trusted, tmp_path, SOURCE.replace("        return y * 2", caught))
    report = trusted.command("t2j.check", pair.uri, "Net", timeout=TIMEOUT)
    (verdict,) = report["objects"]
    assert verdict["verdict"] == "unchecked" and "forward catches exceptions" in verdict["reason"], verdict


def test_only_what_changed_is_run_again(trusted: Client, tmp_path: Path) -> None:
    pair = Pair(trusted, tmp_path)
    trusted.state(pair.uri)
    since = trusted.now
    pair.convert()
    pair.checked(since)
    since = trusted.now
    pair.replace("x * 3", "x * 4")
    report = pair.checked(since, "different")
    assert {o["name"]: o["verdict"] for o in report["objects"]} == {"Net": "equivalent", "scale": "different"}
    steps = [
        m["params"]["value"].get("message")
        for m in trusted.messages[since:]
        if m.get("method") == "$/progress" and m["params"]["value"].get("message")
    ]
    assert set(steps) <= {"checking scale"}


def test_a_check_that_is_cancelled_really_stops(trusted: Client, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    pair = Pair(trusted, tmp_path, SLOW.replace("    for _", f"    open({str(gate)!r}).read()\n    for _"))
    since = trusted.now
    request = trusted.start("workspace/executeCommand", {"command": "t2j.check", "arguments": [pair.uri, "slow"]})
    begun = trusted.wait_notification("$/progress", lambda p: p["value"]["kind"] == "begin", since, TIMEOUT)
    trusted.wait_notification("$/progress", lambda p: p["value"].get("message") == "checking slow", since, TIMEOUT)
    reached: list[int] = []
    waiting = threading.Thread(target=lambda: reached.append(os.open(gate, os.O_WRONLY)), daemon=True)
    waiting.start()
    waiting.join(TIMEOUT)
    assert reached, "the code that is checked never ran"
    running = workers(trusted.command("t2j.debugInfo")["processes"]["check"])
    assert running
    trusted.notify("window/workDoneProgress/cancel", {"token": begun["token"]})
    report = trusted.result(request, TIMEOUT)
    assert report["objects"] == []
    trusted.wait_notification("$/progress", lambda p: p["value"]["kind"] == "end", since, TIMEOUT)
    os.close(reached[0])
    # The worker in which the code ran is gone; the check process stays.
    assert any(gone(pid, 0) for pid in running)
    assert trusted.command("t2j.debugInfo")["processes"]["check"] is not None


def test_an_edit_stops_the_check_of_the_edited_text(trusted: Client, tmp_path: Path) -> None:
    pair = Pair(trusted, tmp_path, SLOW)
    since = trusted.now
    request = trusted.start("workspace/executeCommand", {"command": "t2j.check", "arguments": [pair.uri]})
    trusted.wait_notification("$/progress", lambda p: p["value"]["kind"] == "begin", since, TIMEOUT)
    trusted.change(pair.uri, 2, {"text": SOURCE})
    assert trusted.result(request, TIMEOUT)["objects"] == []
    report = trusted.command("t2j.check", pair.uri, "scale", timeout=TIMEOUT)
    assert report["verdict"] == "equivalent"


def test_a_file_that_is_opened_while_it_is_checked_keeps_its_verdict(trusted: Client, tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(SOURCE)
    (tmp_path / "net_jax.py").write_text(trusted.command("t2j.previewFile", path.as_uri())["code"])
    since = trusted.now
    request = trusted.start("workspace/executeCommand", {"command": "t2j.check", "arguments": [path.as_uri()]})
    trusted.wait_notification("$/progress", lambda p: p["value"]["kind"] == "begin", since, TIMEOUT)
    trusted.open(path.as_uri(), SOURCE)
    report = trusted.result(request, TIMEOUT)
    assert (report["verdict"], report["problem"]) == ("equivalent", None)


def test_a_killed_check_process_is_said_and_replaced(trusted: Client, tmp_path: Path) -> None:
    pair = Pair(trusted, tmp_path, SLOW)
    since = trusted.now
    request = trusted.start("workspace/executeCommand", {"command": "t2j.check", "arguments": [pair.uri, "slow"]})
    trusted.wait_notification("$/progress", lambda p: p["value"]["kind"] == "begin", since, TIMEOUT)
    pid = trusted.command("t2j.debugInfo")["processes"]["check"]
    children = workers(pid)
    os.kill(pid, signal.SIGKILL)
    assert "the check process ended" in trusted.result(request, TIMEOUT)["problem"]
    assert all(gone(child, 20_000) for child in children)
    report = trusted.command("t2j.check", pair.uri, "scale", timeout=TIMEOUT)
    assert report["verdict"] == "equivalent"


def test_a_text_that_cant_be_read_is_a_problem_and_not_a_verdict(trusted: Client, tmp_path: Path) -> None:
    pair = Pair(trusted, tmp_path, "import torch\ndef f(:\n")
    report = trusted.command("t2j.check", pair.uri, timeout=TIMEOUT)
    assert report["verdict"] == "unchecked" and report["problem"]
    with pytest.raises(ServerError, match=r"only \.py"):
        trusted.command("t2j.check", "untitled:x.py")


def test_trust_that_is_taken_back_holds_at_once(trusted: Client, tmp_path: Path) -> None:
    pair = Pair(trusted, tmp_path)
    trusted.notify("t2j/didChangeTrust", {"trusted": False})
    with pytest.raises(ServerError, match="not trusted"):
        trusted.command("t2j.check", pair.uri)
    trusted.state(pair.uri)
    pair.convert()
    since = trusted.now
    trusted.notify("t2j/didChangeTrust", {"trusted": True})
    assert pair.checked(since)["verdict"] == "equivalent"


def test_the_workers_end_with_the_server(trusted: Client, tmp_path: Path) -> None:
    pair = Pair(trusted, tmp_path)
    trusted.command("t2j.check", pair.uri, "scale", timeout=TIMEOUT)
    pid = trusted.command("t2j.debugInfo")["processes"]["check"]
    children = [pid, *workers(pid)]
    assert len(children) >= 3
    assert trusted.shutdown() == 0
    assert all(gone(child, 20_000) for child in children)


def workers(pid: int) -> list[int]:
    """The descendants of a process."""
    texts: list[int] = []
    todo = [pid]
    while todo:
        for file in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            children = [int(child) for child in file.read_text().split()]
            texts += children
            todo += children
    return texts


def gone(pid: int, wait: int) -> bool:
    """Whether a process has ended, waiting so many milliseconds for it."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    ended = bool(poll.poll(wait))
    os.close(descriptor)
    return ended
