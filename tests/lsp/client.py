"""A language client for tests and benchmarks: a real server process, each message checked against the protocol's types.

Nothing here sleeps: whoever waits, waits for a message.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import converters, types

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 60.0

_CONVERTER = converters.get_converter()

Json = dict[str, Any]

FULL: Json = {
    "general": {"positionEncodings": ["utf-16"]},
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "textDocument": {
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["", "quickfix", "refactor", "source"]}},
            "dataSupport": True,
            "disabledSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        },
        "publishDiagnostics": {"relatedInformation": True, "codeDescriptionSupport": True, "dataSupport": True},
        "codeLens": {},
        "inlayHint": {},
    },
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "workspaceEdit": {
            "documentChanges": True,
            "resourceOperations": ["create"],
            "changeAnnotationSupport": {"groupsOnLabel": True},
        },
        "codeLens": {"refreshSupport": True},
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True},
    },
    "notebookDocument": {"synchronization": {"dynamicRegistration": False}},
}
"""What VS Code can do, as far as the server looks at it; diagnostics are pushed."""


def capabilities(**changes: Any) -> Json:
    """`FULL` with entries replaced: ``capabilities(general={...})``; None removes one. ``a__b`` names a nested one."""
    result: Json = json.loads(json.dumps(FULL))
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = result
        for parent in parents:
            place = place.setdefault(parent, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return result


class ServerError(Exception):
    """The server answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]


class Client:
    """One server process, over its standard streams or TCP. Use as a context manager."""

    def __init__(
        self,
        *,
        tcp: bool = False,
        log: Path | None = None,
        env: dict[str, str] | None = None,
        program: Sequence[str] = ("-m", "t2j_lsp", "serve"),
        python: Path | str = sys.executable,
    ) -> None:
        command = [str(python), *program, *(["--tcp", "127.0.0.1:0"] if tcp else [])]
        variables = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
        self.started = time.perf_counter()
        self._log = open(log, "wb") if log is not None else None  # noqa: SIM115 - closed with the client
        errors = subprocess.PIPE if tcp else self._log
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=variables, cwd=ROOT
        )
        self._socket: socket.socket | None = None
        assert self.process.stdin is not None and self.process.stdout is not None
        self._out: Any = self.process.stdin
        self._in: Any = self.process.stdout
        if tcp:
            assert self.process.stderr is not None
            address = self.process.stderr.readline().decode().rsplit(" ", 1)[-1].strip()
            host, _, port = address.rpartition(":")
            self._socket = socket.create_connection((host, int(port)))
            self._out = self._socket.makefile("wb")
            self._in = self._socket.makefile("rb")
        self.messages: list[Json] = []
        self.ended = False
        self.settings: Any = None
        """What the server gets for ``workspace/configuration``."""
        self.answers: dict[str, Callable[[Any], Any]] = {}
        self._methods: dict[Any, str] = {}
        self._count = 0
        self._arrived = threading.Condition()
        self._writing = threading.Lock()
        self.problems: list[str] = []
        """Messages that are not as the protocol has them."""
        self.start_over()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server; it gets no time to say goodbye."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):  # What was not sent any more.
            self._out.close()
        if self._socket is not None:
            self._socket.close()
        if self._log is not None:
            self._log.close()
        assert not self.problems, self.problems

    def start_over(self) -> None:
        """Forget what came, and what a test has said to the client."""
        with self._arrived:
            self.messages.clear()
        self.settings = None
        self.answers = {
            types.WORKSPACE_CONFIGURATION: lambda params: [self.settings for _ in params["items"]],
            types.WORKSPACE_APPLY_EDIT: lambda params: {"applied": True},
            types.WINDOW_SHOW_DOCUMENT: lambda params: {"success": True},
        }

    # --- messages -------------------------------------------------------------------------------------------------

    def send_raw(self, body: bytes) -> None:
        """Send bytes as a message, whatever they are."""
        with self._writing:
            self._out.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            self._out.flush()

    def send(self, message: Json) -> None:
        self.send_raw(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def notify(self, method: str, params: Any) -> None:
        self.send({"method": method, "params": params})

    def start(self, method: str, params: Any) -> int:
        """Send a request and return its id."""
        self._count += 1
        self._methods[self._count] = method
        self.send({"id": self._count, "method": method, "params": params})
        return self._count

    def result(self, identity: int, timeout: float = TIMEOUT) -> Any:
        """The answer to a request. Raises ServerError."""
        message = self.wait(lambda m: m.get("id") == identity and "method" not in m, timeout)
        if "error" in message:
            raise ServerError(message["error"])
        return message["result"]

    def request(self, method: str, params: Any = None, timeout: float = TIMEOUT) -> Any:
        return self.result(self.start(method, params), timeout)

    def wait(self, wanted: Callable[[Json], bool], timeout: float = TIMEOUT, since: int = 0) -> Json:
        """The first message from number ``since`` on that is wanted."""
        deadline = time.monotonic() + timeout
        with self._arrived:
            at = since
            while True:
                while at < len(self.messages):
                    if wanted(self.messages[at]):
                        return self.messages[at]
                    at += 1
                if self.ended:
                    raise EOFError("the server has ended")
                if not self._arrived.wait(deadline - time.monotonic()):
                    raise TimeoutError(f"nothing came in {timeout} s; last: {str(self.messages[-3:])[:500]}")

    def wait_notification(
        self, method: str, about: Callable[[Any], bool] = lambda _: True, since: int = 0, timeout: float = TIMEOUT
    ) -> Any:
        """The parameters of the first such notification."""
        return self.wait(lambda m: m.get("method") == method and about(m["params"]), timeout, since)["params"]

    @property
    def now(self) -> int:
        """How many messages have come so far, for ``since``."""
        with self._arrived:
            return len(self.messages)

    def _read(self) -> None:
        while (message := self._read_message()) is not None:
            self._check(message)
            if "method" in message and "id" in message:
                answer = self.answers.get(message["method"], lambda params: None)
                with contextlib.suppress(OSError):  # The server may have ended meanwhile.
                    self.send({"id": message["id"], "result": answer(message.get("params"))})
            with self._arrived:
                self.messages.append(message)
                self._arrived.notify_all()
        self._in.close()
        with self._arrived:
            self.ended = True
            self._arrived.notify_all()

    def _read_message(self) -> Json | None:
        length = 0
        try:
            while True:
                line = self._in.readline()
                if not line:
                    return None
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
                elif not line.strip():
                    break
                else:
                    self.problems.append(f"a header line {line[:80]!r}")
            return json.loads(self._in.read(length))  # type: ignore[no-any-return]
        except (OSError, ValueError):
            return None

    def _check(self, message: Json) -> None:
        """Notes what is not as the protocol has it: every message is read into the type of its method."""
        method = message.get("method") or self._methods.get(message.get("id"))
        known = types.METHOD_TO_TYPES.get(method or "")
        if known is None or "error" in message:
            return
        kind = known[0] if "method" in message else known[1]
        try:
            if kind is not None:
                _CONVERTER.structure(message, kind)
        except Exception as error:  # noqa: BLE001 - whatever the converter raises, the message is wrong
            self.problems.append(f"{method}: {error}")

    # --- everyday requests ----------------------------------------------------------------------------------------

    def initialize(
        self,
        root: Path | None = None,
        caps: Json | None = None,
        options: Json | None = None,
        folders: Sequence[Path] = (),
    ) -> Json:
        """The server's capabilities."""
        result = self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": root.as_uri() if root is not None else None,
                "capabilities": FULL if caps is None else caps,
                "initializationOptions": options or {},
                "workspaceFolders": [{"uri": f.as_uri(), "name": f.name} for f in folders] or None,
            },
        )
        self.notify("initialized", {})
        return result["capabilities"]  # type: ignore[no-any-return]

    def open(self, uri: str, text: str, version: int = 1, language: str = "python") -> None:
        item = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, version: int, *changes: Json) -> None:
        identifier = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": list(changes)})

    def shutdown(self) -> int:
        """Say goodbye and return the exit code."""
        self.request("shutdown")
        self.notify("exit", None)
        return self.process.wait(TIMEOUT)

    def hover(self, uri: str, line: int, character: int) -> Any:
        return self.request("textDocument/hover", at(uri, line, character))

    def actions(self, uri: str, where: Json, only: Sequence[str] = (), diagnostics: Sequence[Json] = ()) -> list[Json]:
        context: Json = {"diagnostics": list(diagnostics), **({"only": list(only)} if only else {})}
        params = {"textDocument": {"uri": uri}, "range": where, "context": context}
        return self.request("textDocument/codeAction", params)  # type: ignore[no-any-return]

    def resolve(self, action: Json) -> Json:
        return self.request("codeAction/resolve", action)  # type: ignore[no-any-return]

    def command(self, name: str, *arguments: Any, timeout: float = TIMEOUT) -> Any:
        return self.request("workspace/executeCommand", {"command": name, "arguments": list(arguments)}, timeout)

    def state(self, uri: str, complete: bool = False) -> Json:
        """The migration state, once the present text (as a whole) is analysed."""
        return self.request("t2j/state", {"uri": uri, "complete": complete})  # type: ignore[no-any-return]

    def diagnostics(self, uri: str, version: int | None = None, since: int = 0) -> list[Json]:
        """The next diagnostics that are pushed for a document (of a version)."""

        def fits(params: Json) -> bool:
            return params["uri"] == uri and (version is None or params.get("version") == version)

        result = self.wait_notification("textDocument/publishDiagnostics", fits, since)
        return result["diagnostics"]  # type: ignore[no-any-return]


def at(uri: str, line: int, character: int) -> Json:
    """A place in a document."""
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}


def span(line: int, character: int, end_line: int | None = None, end: int | None = None) -> Json:
    """A range; without an end, an empty one."""
    last = {"line": line if end_line is None else end_line, "character": character if end is None else end}
    return {"start": {"line": line, "character": character}, "end": last}


def applied(text: str, edits: Sequence[Json]) -> str:
    """A text after a client's edits, positions in UTF-16."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)

    def index(position: Json) -> int:
        line = lines[position["line"]]
        units = line.encode("utf-16-le")[: 2 * position["character"]]
        return starts[position["line"]] + len(units.decode("utf-16-le"))

    for edit in sorted(edits, key=lambda e: index(e["range"]["start"]), reverse=True):
        text = text[: index(edit["range"]["start"])] + edit["newText"] + text[index(edit["range"]["end"]) :]
    return text
