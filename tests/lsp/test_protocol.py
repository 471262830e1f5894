"""Messages that are wrong, early, late, cancelled or about nothing: the server answers properly and lives on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .client import FULL, ROOT, Client, ServerError, at, span
from .programs import NET, place_of

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
NOT_INITIALIZED, CANCELLED = -32002, -32800


def lives(client: Client, uri: str) -> None:
    """Whether the server still does its work."""
    client.open(uri, NET)
    client.state(uri)
    line, column = place_of(NET, "torch.softmax")
    assert "jax.nn.softmax" in client.hover(uri, line, column + 7)["contents"]["value"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", PARSE_ERROR),
        (b"\xff\xfe", PARSE_ERROR),
        (b"[" * 100_000, PARSE_ERROR),
        (b"[]", INVALID_REQUEST),
        (b"null", INVALID_REQUEST),
        (b'{"id": 1, "method": "shutdown"}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0"}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": null, "method": 7}', INVALID_REQUEST),
    ],
)
def test_what_is_no_request_gets_an_error_without_an_id(body: bytes, code: int, shared: Client, uri: str) -> None:
    since = shared.now
    shared.send_raw(body)
    assert shared.wait(lambda m: "error" in m and m["id"] is None, since=since)["error"]["code"] == code
    lives(shared, uri)


@pytest.mark.parametrize(
    "params", [None, [], {"textDocument": 3}, {"textDocument": {"uri": "file:///x.py"}, "position": {"line": "first"}}]
)
def test_parameters_of_the_wrong_form_are_refused(params: object, shared: Client, uri: str) -> None:
    with pytest.raises(ServerError) as error:
        shared.request("textDocument/hover", params)
    assert error.value.code in (INVALID_PARAMS, -32603)
    lives(shared, uri)


def test_unknown_methods_are_refused_and_unknown_notifications_ignored(shared: Client, uri: str) -> None:
    with pytest.raises(ServerError) as error:
        shared.request("textDocument/declarationOfLove", {})
    assert error.value.code == METHOD_NOT_FOUND
    shared.notify("$/whatever", {"a": 1})
    shared.notify("textDocument/didChange", {"nonsense": True})
    lives(shared, uri)


def test_unknown_documents_are_no_error(shared: Client, uri: str) -> None:
    nothing = {"textDocument": {"uri": "file:///never/opened.py"}}
    shared.change("file:///never/opened.py", 2, {"text": "x"})
    shared.notify("textDocument/didClose", nothing)
    assert shared.request("textDocument/hover", at("file:///never/opened.py", 0, 0)) is None
    assert shared.actions("file:///never/opened.py", span(0, 0)) == []
    assert shared.request("textDocument/codeLens", nothing) == []
    assert shared.request("textDocument/inlayHint", {**nothing, "range": span(0, 0)}) == []
    assert shared.state("file:///never/opened.py") is None
    with pytest.raises(ServerError, match=r"/never/opened\.py: no such file"):
        shared.command("t2j.convertFile", "file:///never/opened.py")
    with pytest.raises(ServerError, match="not open"):
        shared.command("t2j.convertFile", "untitled:never")
    lives(shared, uri)


@pytest.mark.parametrize("arguments", [[], [None], ["untitled:x", 7], [{"a": 1}, {"kind": "lines", "first": "one"}]])
def test_commands_with_the_wrong_arguments_are_refused(arguments: list[object], shared: Client, uri: str) -> None:
    for name in ("t2j.convert", "t2j.convertFile", "t2j.previewFile", "t2j.convertFiles", "t2j.check"):
        with pytest.raises(ServerError):
            shared.command(name, *arguments)
    shared.open(uri, NET)
    with pytest.raises(ServerError, match="nothing to convert"):
        shared.command("t2j.convert", uri, {"kind": "lines", "first": "one"})
    with pytest.raises(ServerError):
        shared.command("t2j.noSuchCommand")


def test_positions_beyond_the_text_are_harmless(shared: Client, uri: str) -> None:
    shared.open(uri, NET)
    shared.state(uri)
    assert shared.hover(uri, 10**6, 10**6) is None
    shared.hover(uri, 3, 10**6)
    shared.actions(uri, span(0, 0, 10**6, 10**6))
    shared.change(uri, 2, {"range": span(10**6, 0, 10**6, 5), "text": "\nz = torch.ones(3)\n"})
    shared.state(uri)
    assert "jnp.ones(3)" in shared.hover(uri, NET.count("\n") + 1, 8)["contents"]["value"]


def test_requests_before_initialize_and_after_shutdown_are_refused(tmp_path: Path) -> None:
    with Client(log=tmp_path / "log") as client:
        with pytest.raises(ServerError) as early:
            client.hover("untitled:a.py", 0, 0)
        assert early.value.code == NOT_INITIALIZED
        client.initialize()
        with pytest.raises(ServerError) as twice:
            client.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        assert twice.value.code == INVALID_REQUEST
        client.request("shutdown")
        with pytest.raises(ServerError) as late:
            client.hover("untitled:a.py", 0, 0)
        assert late.value.code == INVALID_REQUEST
        client.notify("exit", None)
        assert client.process.wait(20) == 0


def test_exit_without_shutdown_and_a_closed_pipe_end_the_server_and_its_processes(start: Callable[..., Client]) -> None:
    def analysis(client: Client) -> int:
        client.open("untitled:a.py", NET)
        client.state("untitled:a.py")
        return int(client.command("t2j.debugInfo")["processes"]["analysis"])

    client = start()
    child = analysis(client)
    client.notify("exit", None)
    assert client.process.wait(20) == 1
    assert gone(child)
    client = start()
    child = analysis(client)
    assert client.process.stdin is not None
    client.process.stdin.close()
    assert client.process.wait(20) == 0
    assert gone(child)
    client = start()
    child = analysis(client)
    client.process.kill()
    assert gone(child)


def gone(pid: int) -> bool:
    """Whether a process ends; waits for it."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    ended = bool(poll.poll(20_000))
    os.close(descriptor)
    return ended


def test_a_cancelled_request_is_answered_so(start: Callable[..., Client]) -> None:
    client = start()
    client.open("untitled:a.py", "import torch\n" + "\n".join(f"x{i} = torch.zeros({i})" for i in range(2000)))
    identity = client.start("t2j/state", {"uri": "untitled:a.py"})
    client.notify("$/cancelRequest", {"id": identity})
    with pytest.raises(ServerError) as error:
        client.result(identity)
    assert error.value.code == CANCELLED
    client.notify("$/cancelRequest", {"id": 123456})
    lives(client, "untitled:b.py")


def test_a_killed_analysis_process_is_replaced(start: Callable[..., Client]) -> None:
    client = start()
    lives(client, "untitled:a.py")
    for number in range(3):
        pid = client.command("t2j.debugInfo")["processes"]["analysis"]
        os.kill(pid, signal.SIGKILL)
        assert gone(pid)
        lives(client, f"untitled:after{number}.py")
        assert client.command("t2j.debugInfo")["processes"]["analysis"] != pid


def test_the_restart_command_starts_anew(start: Callable[..., Client]) -> None:
    client = start()
    lives(client, "untitled:a.py")
    before = client.command("t2j.debugInfo")["processes"]["analysis"]
    client.command("t2j.restart")
    assert gone(before)
    lives(client, "untitled:b.py")


def test_the_server_loads_neither_frameworks_nor_the_translator(shared: Client, uri: str) -> None:
    lives(shared, uri)
    assert shared.command("t2j.debugInfo")["loaded"] == []


def test_it_serves_over_tcp(start: Callable[..., Client]) -> None:
    client = start(tcp=True)
    lives(client, "untitled:a.py")
    assert client.shutdown() == 0


@pytest.mark.parametrize("address", ["nonsense", "localhost:99999", ":"])
def test_an_address_that_is_none_is_said(address: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "t2j_lsp", "serve", "--tcp", address],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
    )
    assert run.returncode == 2 and "HOST:PORT" in run.stderr


STRAY = """
import os, sys
from t2j_lsp.child.streams import guard_stdio
source, sink = guard_stdio()
print("stray print")
os.write(1, b"stray write\\n")
os.system("echo stray child; cat")
assert sys.stdin.buffer.raw.read() == b""
sink.write(b"message:" + source.read())
"""


def test_stray_output_and_children_cant_touch_the_streams() -> None:
    run = subprocess.run([sys.executable, "-c", STRAY], input=b"input", capture_output=True, cwd=ROOT, timeout=60)
    assert run.stdout == b"message:input", run.stderr
    assert run.stderr.count(b"stray") == 3


SECRET = "sk_very_secret_42"


def test_logs_hold_no_code(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Client(log=log) as client:
        client.initialize(None, FULL, {"settings": {"target": SECRET}})
        source = f"import torch\nkey = '{SECRET}'\nx = torch.zeros(2)  # {SECRET}\n"
        client.open("untitled:a.py", source)
        client.state("untitled:a.py")
        client.hover("untitled:a.py", 2, 8)
        for method in ("textDocument/hover", "textDocument/codeAction", "no/such"):
            with pytest.raises(ServerError):
                client.request(method, {"textDocument": SECRET})
        client.notify("textDocument/didOpen", {"textDocument": SECRET})
        client.send_raw(json.dumps({"jsonrpc": "2.0", "method": "x", "params": SECRET})[:-1].encode())
        with pytest.raises(ServerError):
            client.command("t2j.convert", "untitled:a.py", SECRET)
        client.shutdown()
    assert SECRET not in log.read_text()


def test_memory_stays_bounded_over_many_edits(start: Callable[..., Client]) -> None:
    client = start()
    uris = [f"untitled:{number}.py" for number in range(20)]
    for uri in uris:
        client.open(uri, NET)
        client.state(uri)
    children = [client.process.pid, client.command("t2j.debugInfo")["processes"]["analysis"]]

    def edit(rounds: range) -> list[int]:
        for number in rounds:
            for uri in uris:
                client.change(uri, 2 * number, {"range": span(0, 0), "text": f"# {number}\n"})
                client.change(uri, 2 * number + 1, {"range": span(0, 0, 1, 0), "text": ""})
            client.hover(uris[number % 20], 12, 12)
        for uri in uris:
            client.state(uri)
        return [resident(pid) for pid in children]

    before, after = edit(range(1, 20)), edit(range(20, 80))
    assert [new - old < 8192 for old, new in zip(before, after, strict=True)] == [True, True], (before, after)


def resident(pid: int) -> int:
    """KB of memory that a process holds."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
