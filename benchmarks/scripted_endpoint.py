"""A server on this machine that speaks OpenAI's protocol and answers from a script, for tests and benchmarks."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Status:
    """An answer of this status and no text."""

    code: int


@dataclass(frozen=True)
class CutOff:
    """Some text, and then the connection ends."""

    text: str


@dataclass(frozen=True)
class TooLong:
    """Some text, which ends for want of room."""

    text: str


@dataclass(frozen=True)
class Silence:
    """Nothing, until the server ends."""


Step = str | Status | CutOff | TooLong | Silence


@dataclass
class Script:
    """What the server says, step by step, and what it was asked. The last step is said again and again."""

    steps: list[Step] | Callable[[dict[str, Any]], Step]
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    embed: Callable[[str], list[float]] | None = None
    """What ``/embeddings`` gives for a text; a status of 404 where there is none."""
    embedded: list[str] = field(default_factory=list)
    url: str = ""
    asked: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    def next(self, request: dict[str, Any]) -> Step:
        self.requests.append(request)
        self.asked.set()
        if callable(self.steps):
            return self.steps(request)
        return self.steps[min(len(self.requests), len(self.steps)) - 1]


@contextmanager
def serve(
    steps: list[Step] | Callable[[dict[str, Any]], Step], embed: Callable[[str], list[float]] | None = None
) -> Iterator[Script]:
    """The server, as long as the context lasts."""
    script = Script(steps, embed=embed)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            script.keys.append(self.headers.get("Authorization", ""))
            if self.path.endswith("/embeddings"):
                self._embed(request)
                return
            step = script.next(request)
            if isinstance(step, Status):
                self.send_response(step.code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Retry-After", "0")
                self.end_headers()
                self.wfile.write(b'{"error": {"message": "scripted"}}')
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            if isinstance(step, Silence):
                script.over.wait()
                return
            text = step if isinstance(step, str) else step.text
            for start in range(0, len(text), 40):
                self._event(
                    {"choices": [{"index": 0, "delta": {"content": text[start : start + 40]}, "finish_reason": None}]}
                )
            if isinstance(step, CutOff):
                self.connection.close()
                return
            reason = "length" if isinstance(step, TooLong) else "stop"
            self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
            asked, said = sum(len(message["content"]) for message in request["messages"]) // 4, len(text) // 4
            usage = {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
            self._event({"choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")

        def _embed(self, request: dict[str, Any]) -> None:
            script.embedded += request["input"]
            rows = [
                {"object": "embedding", "index": number, "embedding": embed(text)}
                for number, text in enumerate(request["input"] if embed else ())
            ]
            answer = {"object": "list", "model": request["model"], "data": rows} if rows else {"error": {}}
            self.send_response(200 if rows else 404)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def _event(self, data: dict[str, Any]) -> None:
            whole = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "scripted", **data}
            self.wfile.write(f"data: {json.dumps(whole)}\n\n".encode())
            self.wfile.flush()

        def log_message(self, format: str, *arguments: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    script.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        script.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
