"""The server's side of the analysis process: what to analyse next, and the last analysis of each program.

User requests come first, then the newest edits, then translations of whole files once the typing pauses. A
translation of a whole file is interrupted by anything else. A process that dies is started again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from t2j_lsp.child.frames import PICKLE
from t2j_lsp.child.process import Cancelled, Child, ChildFailed
from t2j_lsp.contract import HelperDoc

from .model import REFUSALS, Analysis, ConversionRefused, ConversionSettings, LineMap, SyntaxProblem

log = logging.getLogger("t2j.lsp")

PAUSE = 0.3
"""Seconds without an edit before a whole file is translated."""
MAX_DEATHS = 2
"""So often one text may kill the process before it is left alone."""


class AnalysedText(Protocol):
    """What is analysed."""

    uri: str
    revision: int

    @property
    def lines(self) -> list[str]: ...
    @property
    def text(self) -> str: ...


@dataclass
class KnownAnalysis:
    """The last analysis of a program, of which revision it is, and where its lines are now."""

    revision: int
    lines: LineMap
    analysis: Analysis


@dataclass
class _Job:
    """An operation that is asked of the process, and the answer to come."""

    operation: str
    arguments: dict[str, Any]
    answer: asyncio.Future[Any]


class AnalysisService:
    """Runs the process. Everything here happens on the event loop; nothing waits."""

    def __init__(self, settings_of: Callable[[str], tuple[ConversionSettings, str | None]]) -> None:
        self._settings_of = settings_of
        self.on_analysis: Callable[[str], None] = lambda uri: None
        self.on_state: Callable[[str], None] = lambda state: None
        self.docs: dict[str, tuple[str, str | None, str, str | None, str]] = {}
        self.helpers: dict[str, HelperDoc] = {}
        self.known: dict[str, KnownAnalysis] = {}
        self.broken: dict[str, int] = {}
        """Programs whose text can't be parsed, and its revision."""
        self._programs: dict[str, AnalysedText] = {}
        self._edited: dict[str, None] = {}
        """Programs to analyse, newest last."""
        self._partly: dict[str, float] = {}
        """Programs that wait for a translation as a whole, and when they may have it."""
        self._analysed: tuple[str, LineMap] | None = None
        """The program that is being analysed, and where its lines are meanwhile."""
        self._jobs: list[_Job] = []
        self._waiters: dict[str, list[tuple[int, bool, asyncio.Future[None]]]] = {}
        self._deaths: dict[tuple[str, int], int] = {}
        self._current: _Job | None = None
        self._wake = asyncio.Event()
        self._process = Child("t2j_lsp.lsp.analysis.process", PICKLE, REFUSALS)
        self._running: tuple[str, str] | None = None
        """What the process does, and for which program."""
        self._task: asyncio.Task[None] | None = None

    # --- for the features -----------------------------------------------------------------------------------------

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def update(self, program: AnalysedText) -> None:
        """A program is new, or its text or settings changed."""
        self._programs[program.uri] = program
        if program.uri in self.known:
            self.known[program.uri].lines.follow(program.lines)
        if self._analysed is not None and self._analysed[0] == program.uri:
            self._analysed[1].follow(program.lines)
        self._edited.pop(program.uri, None)
        self._edited[program.uri] = None
        self._partly.pop(program.uri, None)
        self._urgent()

    def drop(self, uri: str) -> None:
        """A program was closed."""
        for table in (self._programs, self._edited, self._partly, self.known, self.broken):
            table.pop(uri, None)
        for _, _, waiter in self._waiters.pop(uri, ()):
            if not waiter.done():
                waiter.set_result(None)
        if self._task is not None:
            self._add("forget", {"key": uri})

    def current(self, program: AnalysedText) -> tuple[Analysis, LineMap] | None:
        """The last analysis, and where its lines are in the current text."""
        known = self.known.get(program.uri)
        return (known.analysis, known.lines) if known is not None else None

    async def settled(self, program: AnalysedText, complete: bool = False) -> None:
        """Wait until the program's present text, or a later one, is analysed (as a whole) or known not to parse."""
        revision = program.revision
        known = self.known.get(program.uri)
        done = known is not None and known.revision >= revision and (known.analysis.complete or not complete)
        if done or self.broken.get(program.uri, -1) >= revision:
            return
        if program.uri not in self._programs:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(program.uri, []).append((revision, complete, waiter))
        await waiter

    async def ask(self, operation: str, program: AnalysedText, **arguments: Any) -> Any:
        """A request about a program's present text. Raises ConversionRefused, SyntaxProblem or ChildFailed."""
        settings, path = self._settings_of(program.uri)
        everything = {"key": program.uri, "text": program.text, "settings": settings, "path": path, **arguments}
        return await self._add(operation, everything)

    async def ask_plain(self, operation: str, **arguments: Any) -> Any:
        """A request that is about no open program."""
        return await self._add(operation, arguments)

    def _add(self, operation: str, arguments: dict[str, Any]) -> asyncio.Future[Any]:
        job = _Job(operation, arguments, asyncio.get_running_loop().create_future())
        job.answer.add_done_callback(lambda answer: self._answered(job, answer))
        self._jobs.append(job)
        self._urgent()
        return job.answer

    def _answered(self, job: _Job, answer: asyncio.Future[Any]) -> None:
        if not answer.cancelled():
            answer.exception()  # Nobody may be waiting for it any more when it fails.
        elif self._current is job:
            self._process.cancel(grace=None)

    @property
    def idle(self) -> bool:
        return not (self._edited or self._partly or self._jobs or self._running)

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def restart(self) -> None:
        """Kill the process; the next job starts another one."""
        self._process.kill()
        for program in list(self._programs.values()):
            self.update(program)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._process.kill()
        await self._process.end()

    # --- the loop -------------------------------------------------------------------------------------------------

    def _urgent(self) -> None:
        self._wake.set()
        if self._running is None:
            return
        operation, key = self._running
        # The first translation of a program is let through: with it, answers come even while somebody types.
        if operation == "full" and (key in self.known or self._jobs):
            self._process.cancel(grace=None)

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                if not self.docs:
                    self.on_state("starting")
                    self.helpers = await self._call("helper_docs", {})
                    self.docs = await self._call("docs", {})
                elif not await self._step():
                    self.on_state("idle")
                    await self._sleep()
            except ChildFailed as error:
                log.error("the analysis failed: %s", error)
                self.on_state("error")
                if not self.docs:
                    await asyncio.sleep(1.0)
            except Exception:  # the outermost guard of this loop: without it, nothing would be analysed any more
                log.exception("an analysis could not be run")
                self.on_state("error")

    async def _sleep(self) -> None:
        now = asyncio.get_running_loop().time()
        wait = max(0.0, min(self._partly.values()) - now) if self._partly else None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), wait)

    async def _step(self) -> bool:
        """Do what is most urgent; False where nothing is."""
        if self._jobs:
            await self._answer(self._jobs.pop(0))
        elif self._edited:
            uri, _ = self._edited.popitem()
            await self._analyse(uri, "quick")
        else:
            now = asyncio.get_running_loop().time()
            due = [uri for uri, when in self._partly.items() if when <= now]
            if not due:
                return False
            await self._analyse(due[-1], "full")
        return True

    async def _answer(self, job: _Job) -> None:
        if job.answer.cancelled():
            return
        self._current = job
        try:
            value = await self._call(job.operation, job.arguments)
        except (ChildFailed, ConversionRefused, SyntaxProblem) as error:
            if not job.answer.done():
                job.answer.set_exception(error)
        except Cancelled:
            job.answer.cancel()
        else:
            if not job.answer.done():
                job.answer.set_result(value)
        finally:
            self._current = None

    async def _analyse(self, uri: str, operation: str) -> None:
        program = self._programs.get(uri)
        if program is None:
            self._partly.pop(uri, None)
            return
        settings, path = self._settings_of(uri)
        revision, lines = program.revision, LineMap(program.lines)
        self._analysed = (uri, lines)
        arguments = {"key": uri, "text": program.text, "settings": settings, "path": path}
        self.on_state("analysing")
        try:
            analysis = await self._call(operation, arguments)
            if analysis is None:
                # The first time, there is nothing to start from: whoever waits, waits for the whole file.
                self._partly[uri] = 0.0
                return
        except Cancelled:
            self._partly.setdefault(uri, asyncio.get_running_loop().time() + PAUSE)
            return
        except SyntaxProblem:
            self._partly.pop(uri, None)
            self.broken[uri] = revision
        except (ChildFailed, ConversionRefused) as error:
            self._after_failure(uri, revision, error)
            return
        else:
            if uri not in self._programs:
                return
            self.known[uri] = KnownAnalysis(revision, lines, analysis)
            if analysis.broken:
                self.broken[uri] = revision
            else:
                self.broken.pop(uri, None)
            if analysis.complete:
                self._partly.pop(uri, None)
            elif self._programs[uri].revision == revision:
                self._partly[uri] = asyncio.get_running_loop().time() + PAUSE
        self._release(uri, revision, uri in self.broken or analysis.complete)
        self.on_analysis(uri)

    def _after_failure(self, uri: str, revision: int, error: Exception) -> None:
        deaths = self._deaths.get((uri, revision), 0) + 1
        self._deaths = {(uri, revision): deaths}
        log.error("an analysis failed: %s", error)
        if deaths < MAX_DEATHS and uri in self._programs:
            self._edited[uri] = None
            return
        self._partly.pop(uri, None)
        self.on_state("error")
        self._release(uri, revision, True)

    def _release(self, uri: str, revision: int, complete: bool) -> None:
        left: list[tuple[int, bool, asyncio.Future[None]]] = []
        for wanted, whole, waiter in self._waiters.pop(uri, ()):
            if wanted <= revision and (complete or not whole):
                if not waiter.done():
                    waiter.set_result(None)
            elif not waiter.done():
                left.append((wanted, whole, waiter))
        if left:
            self._waiters[uri] = left

    # --- the process ----------------------------------------------------------------------------------------------

    async def _call(self, operation: str, arguments: dict[str, Any]) -> Any:
        self._running = (operation, arguments.get("key", ""))
        try:
            return await self._process.ask(operation, arguments)
        finally:
            self._running = None
