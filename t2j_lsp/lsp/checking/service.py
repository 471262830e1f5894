"""Which conversions are checked and when: newest first, one at a time, and only in a trusted workspace.

A verdict is about two texts. An edit of either makes it stale at once: its diagnostics go, and a running check of
these texts is stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from ...contract import T2JError, VerdictKind
from ...files import read_source
from ..analysis.service import child_environment
from ..documents import Document, Program
from ..links import finding_page
from ..paths import converted_path, source_path, to_path, to_uri
from ..positions import split_lines
from ..progress import Progress

if TYPE_CHECKING:
    from ..server import Server

log = logging.getLogger("t2j.lsp")

CANCEL_GRACE = 5.0
"""Seconds that a check may take to stop before its process is killed."""
CHECKED = "t2j/checked"
LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True)
class Found:
    """A difference, at a line (from 0) of one document, with the other document's line."""

    uri: str
    line: int | None
    message: str
    other_uri: str
    other_line: int | None
    source_uri: str


@dataclass
class Checked:
    """What is known of one pair of files."""

    verdicts: list[dict[str, Any]] = field(default_factory=list)
    device: str = ""
    stale: bool = False
    problem: str | None = None
    """Why the last check gave no verdicts."""
    found: list[Found] = field(default_factory=list)
    shapes: dict[int, list[Any]] = field(default_factory=dict)
    revision: int = -1
    """The source's revision that ``shapes`` are about."""


@dataclass
class _Request:
    uri: str
    due: float
    objects: list[str] | None = None
    done: list[asyncio.Future[Checked]] = field(default_factory=list)


class CheckService:
    """The queue of checks and the process that runs them. Everything here happens on the event loop."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.states: dict[str, Checked] = {}
        self._queue: dict[str, _Request] = {}
        self._running: str | None = None
        self._stopped = False
        """Whether the running check was told to stop."""
        self._wake = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._count = 0
        self._task: asyncio.Task[None] | None = None

    # --- pairs ----------------------------------------------------------------------------------------------------

    def source_of(self, uri: str) -> str | None:
        """The URI of the PyTorch file that a document belongs to: its own, or that of the file it came from."""
        path = to_path(uri)
        if path is None or path.suffix != ".py":
            return None
        suffix = self.server.settings_for(uri).suffix
        origin = source_path(path, suffix)
        if origin is not None and (to_uri(origin) in self.server.store.documents or origin.is_file()):
            return to_uri(origin) if to_uri(origin) in self.server.store.documents else self._spelled(origin)
        return uri

    def _spelled(self, path: Path) -> str:
        """A path's URI as the client spells it, where it has the file open."""
        for uri in self.server.store.documents:
            if to_path(uri) == path:
                return uri
        return to_uri(path)

    def converted_of(self, source_uri: str) -> tuple[str, Path] | None:
        """The conversion of a source: its URI and path, if it is open or on disk."""
        path = to_path(source_uri)
        if path is None:
            return None
        target = converted_path(path, self.server.settings_for(source_uri).suffix)
        uri = self._spelled(target)
        return (uri, target) if uri in self.server.store.documents or target.is_file() else None

    def _text(self, uri: str, path: Path) -> tuple[str, int]:
        """A text and its revision; 0 for one on disk. Raises T2JError where it can't be read."""
        document = self.server.store.document(uri)
        return (document.text, document.revision) if document is not None else (read_source(path).text, 0)

    # --- asking for checks ----------------------------------------------------------------------------------------

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def edited(self, uri: str, wait: bool = True) -> None:
        """A document was edited, opened or written: what was found is stale, and another check is due."""
        source = self.source_of(uri)
        if source is None:
            return
        self._make_stale(source)
        settings = self.server.settings_for(source)
        if settings.check and self.server.trusted and self.converted_of(source) is not None:
            delay = settings.check_delay if wait else 0.0
            self._enqueue(source, delay)

    def _make_stale(self, source: str) -> None:
        state = self.states.get(source)
        if state is not None and not state.stale:
            state.stale = True
            state.found, state.shapes = [], {}
            self._publish(source)
            self.server.refresh_views()
        if self._running == source and not self._stopped:
            self._stop()

    def _enqueue(self, source: str, delay: float, objects: list[str] | None = None) -> _Request:
        request = self._queue.pop(source, None) or _Request(source, 0.0)
        request.due = asyncio.get_running_loop().time() + delay
        request.objects = objects
        self._queue[source] = request
        self._wake.set()
        return request

    async def check(self, uri: str, objects: Sequence[str] | None = None) -> Checked:
        """Check now and wait for the verdict. Raises T2JError where that may not or can't be done."""
        if not self.server.trusted:
            raise T2JError("the workspace is not trusted, and a check runs its code")
        source = self.source_of(uri)
        if source is None:
            raise T2JError("only .py files are checked")
        request = self._enqueue(source, 0.0, list(objects) if objects else None)
        done: asyncio.Future[Checked] = asyncio.get_running_loop().create_future()
        request.done.append(done)
        return await done

    def cancel(self) -> None:
        """Stop the running check and forget those that wait."""
        for request in self._queue.values():
            _answer(request, Checked(problem="the check was cancelled"))
        self._queue.clear()
        self._stop()

    def _stop(self) -> None:
        if self._running is not None and self._process is not None and self._process.stdin is not None:
            self._stopped = True
            self._send({"operation": "cancel"})
            self.server.spawn(self._kill_if_it_stays(self._count))

    async def _kill_if_it_stays(self, count: int) -> None:
        deadline = asyncio.get_running_loop().time() + CANCEL_GRACE
        while self._running is not None and self._count == count:
            if asyncio.get_running_loop().time() > deadline:
                self.kill()
                return
            await asyncio.sleep(0.1)

    # --- the queue ------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            now = asyncio.get_running_loop().time()
            due = [r for r in self._queue.values() if r.due <= now]
            if due:
                request = self._queue.pop(due[-1].uri)
                await self._one(request)
                continue
            await self._sleep(now)

    async def _sleep(self, now: float) -> None:
        if self._queue:
            wait: float | None = max(0.0, min(r.due for r in self._queue.values()) - now)
        else:
            wait = self.server.settings_for(None).check_keep_warm if self.alive else None
        try:
            await asyncio.wait_for(self._wake.wait(), wait)
        except TimeoutError:
            if not self._queue:
                await self._end()

    async def _one(self, request: _Request) -> None:
        source = request.uri
        self._running, self._stopped = source, False
        progress = Progress(self.server, f"Checking {Path(to_path(source) or source).name}", self.cancel)
        self.server.announce("checking", source)
        try:
            state = await self._ask(source, request.objects, progress)
        except T2JError as error:
            state = Checked(problem=str(error))
        finally:
            self._running = None
            progress.end()
            self.server.announce("idle", source)
        if state is not None:
            self.states[source] = state
            self._publish(source)
            self.server.refresh_views()
            self.server.protocol.notify(CHECKED, self.summary(source))
        _answer(request, state or Checked(problem="the check was cancelled"))

    async def _ask(self, source: str, objects: list[str] | None, progress: Progress) -> Checked | None:
        """Run one check; None where it was stopped or its texts were edited meanwhile."""
        path = to_path(source)
        if path is None:
            raise T2JError("only files are checked")
        pair = self.converted_of(source)
        source_text, revision = self._text(source, path)
        converted_text, other = self._text(*pair) if pair is not None else (None, 0)
        settings = self.server.settings_for(source)
        answer = await self._call(
            {
                "source": str(path),
                "source_text": source_text,
                "converted": str(pair[1]) if pair is not None else None,
                "converted_text": converted_text,
                "objects": objects,
                "stage": settings.check_stage,
                "device": settings.check_device,
                "timeout": settings.check_timeout,
                "torch_python": settings.torch_python,
                "jax_python": settings.jax_python,
                "shapes": settings.inlay_hints,
            },
            progress,
        )
        now = (self._text(source, path)[1], self._text(*pair)[1] if pair is not None else 0)
        if answer is None or self._stopped or now != (revision, other):
            return None
        merged = self._merged(source, answer, objects)
        converted_uri = pair[0] if pair is not None else source
        shapes = {int(line): found for line, found in answer["shapes"].items()}
        found = [f for v in answer["objects"] for f in _found(v, source, path, converted_uri, pair is not None)]
        return Checked(merged, answer["device"], False, None, found, shapes, revision)

    def _merged(self, source: str, answer: dict[str, Any], objects: list[str] | None) -> list[dict[str, Any]]:
        """The new verdicts, among those on other objects of the file that still hold."""
        before = self.states.get(source)
        if objects is None or before is None or before.stale:
            return list(answer["objects"])
        new = {v["name"]: v for v in answer["objects"]}
        kept = [new.pop(v["name"], v) for v in before.verdicts]
        return [*kept, *new.values()]

    # --- results --------------------------------------------------------------------------------------------------

    def found_in(self, uri: str) -> list[Found]:
        """The differences that are shown in a document."""
        return [f for state in self.states.values() for f in state.found if f.uri == uri]

    def diagnostics(self, program: Program, uri: str) -> list[types.Diagnostic]:
        """The differences in a document as diagnostics."""
        return self._listed(self.found_in(uri), self.server.store.document(uri))

    def _listed(self, found: list[Found], document: Document | None) -> list[types.Diagnostic]:
        page = finding_page(self.server, "different") if self.server.client.code_description else None
        listed: list[types.Diagnostic] = []
        for one in found:
            line = one.line or 0
            lines = document.lines if document is not None else self._disk_lines(one.uri)
            text = lines[line].rstrip("\r\n") if line < len(lines) else ""
            indent = len(text) - len(text.lstrip())
            where = types.Range(
                types.Position(line, indent),
                self.server.store.position(Document(one.uri, text, None), 0, len(text)),
            )
            where.end.line = line
            related = None
            if self.server.client.related_information and one.other_line is not None:
                other = types.Position(one.other_line, 0)
                side = "the PyTorch line" if one.other_uri == one.source_uri else "the JAX line"
                related = [
                    types.DiagnosticRelatedInformation(types.Location(one.other_uri, types.Range(other, other)), side)
                ]
            listed.append(
                types.Diagnostic(
                    where,
                    one.message,
                    types.DiagnosticSeverity.Error,
                    "different",
                    types.CodeDescription(page) if page else None,
                    "t2j",
                    related_information=related,
                )
            )
        return listed

    def _disk_lines(self, uri: str) -> list[str]:
        path = to_path(uri)
        try:
            return split_lines(read_source(path).text) if path is not None else []
        except T2JError:
            return []

    def _publish(self, source: str) -> None:
        """Push what is known of both files of a pair."""
        pair = self.converted_of(source)
        for uri in dict.fromkeys([source, *([pair[0]] if pair is not None else [])]):
            program = self.server.store.program(uri)
            if program is not None:
                self.server.diagnostics.publish(program)
            else:
                self.server.diagnostics.push(uri, self._listed(self.found_in(uri), None))

    def summary(self, source: str) -> dict[str, Any]:
        """What is known of a pair, for the client."""
        state = self.states.get(source, Checked())
        pair = self.converted_of(source)
        return {
            "uri": source,
            "converted": pair[0] if pair is not None else None,
            "verdict": overall(state),
            "stale": state.stale,
            "problem": state.problem,
            "device": state.device,
            "objects": state.verdicts,
        }

    # --- the process ----------------------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.alive else None

    async def _call(self, request: dict[str, Any], progress: Progress) -> dict[str, Any] | None:
        if self._process is None or not self.alive:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "t2j_lsp.lsp.checking.process",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                cwd=tempfile.gettempdir(),
                env=child_environment(),
                start_new_session=True,
                limit=LIMIT,
            )
        self._count += 1
        self._send({"id": self._count, "operation": "check", **request})
        assert self._process.stdout is not None
        while True:
            line = await self._process.stdout.readline()
            if not line:
                await self._process.wait()
                if self._stopped:
                    return None
                raise T2JError("the check process ended; the next check starts another one")
            answer = json.loads(line)
            if answer.get("id") != self._count:
                continue
            if "progress" in answer:
                progress.report(answer["progress"])
            elif "error" in answer:
                raise T2JError(answer["error"])
            else:
                value: dict[str, Any] | None = answer.get("value")
                return value

    def _send(self, message: dict[str, Any]) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError, RuntimeError):
                self._process.stdin.write(json.dumps(message).encode() + b"\n")

    def kill(self) -> None:
        """End the process at once; its workers see their pipes close and end as well."""
        if self._process is not None and self.alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()

    async def _end(self) -> None:
        """Let the process end, with its workers."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), CANCEL_GRACE)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        await self._end()


def overall(state: Checked) -> str:
    """The verdict on a whole file, by the rule of `CheckReport`."""
    kinds = {v["verdict"] for v in state.verdicts}
    if VerdictKind.DIFFERENT in kinds:
        return str(VerdictKind.DIFFERENT)
    if VerdictKind.UNCHECKED in kinds or not kinds:
        return str(VerdictKind.UNCHECKED)
    return str(VerdictKind.EQUIVALENT)


def _answer(request: _Request, state: Checked) -> None:
    for done in request.done:
        if not done.done():
            done.set_result(state)


def _found(verdict: dict[str, Any], source: str, path: Path, converted: str, in_file: bool) -> list[Found]:
    """The places of one verdict's difference: in the PyTorch file, and in the conversion where that is a file."""
    if verdict["verdict"] != VerdictKind.DIFFERENT:
        return []
    divergence = verdict["divergence"] or {}
    message = f"{verdict['name']} differs from PyTorch: {divergence.get('what') or verdict['reason']}"
    torch, jax = divergence.get("torch"), divergence.get("jax")
    torch_uri = to_uri(Path(torch["file"])) if torch and Path(torch["file"]) != path.resolve() else source
    torch_line = torch["line"] - 1 if torch else None
    jax_line = jax["line"] - 1 if jax and in_file else None
    found = [Found(torch_uri, torch_line or 0, message, converted, jax_line, source)]
    if in_file:
        found.append(Found(converted, jax_line or 0, message, torch_uri, torch_line, source))
    return found
