"""Which conversions are checked and when: newest first, one at a time, and only in a trusted workspace.

A verdict is about two texts. An edit of either makes it stale at once: its diagnostics go, and a running check of
these texts is stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types

from t2j_lsp import __version__
from t2j_lsp.contract import Coverage, T2JError
from t2j_lsp.lsp.paths import to_path
from t2j_lsp.lsp.progress import Progress, StatusProgress
from t2j_lsp.lsp.session import Session
from t2j_lsp.lsp.settings import Settings
from t2j_lsp.lsp.status import CheckState
from t2j_lsp.migration import verdict_store
from t2j_lsp.migration.verdict_store import Stored, asked_of

from .battery import plugged_in
from .pausing import LOOK, Pause
from .places import PairPlaces
from .requests import CheckRequest
from .runner import CheckProcess
from .verdicts import Checked, FoundDifference, diagnostics_of, differences_of, merged_with, restored, summary_of
from .whole_programs import WholePrograms

log = logging.getLogger("t2j.lsp")

CHECKED = "t2j/checked"


class CheckService:
    """The queue of checks and the process that runs them. Everything here happens on the event loop."""

    battery: Callable[[], bool | None] = staticmethod(plugged_in)

    def __init__(self, session: Session) -> None:
        self.session = session
        self.pairs = session.pairs
        self.on_ran: Callable[[str, tuple[str, Path], tuple[str, str], Iterable[Any]], None] = lambda *_: None
        """Called with a source, its conversion, the texts of both, and the verdicts on just these."""
        self.on_known: Callable[[str, list[dict[str, Any]]], None] = lambda *_: None
        """Called with a source and all verdicts that are known of it now."""
        self.on_differences: Callable[[str], None] = lambda _: None
        """Called with each document whose differences are others than before."""
        self.process = CheckProcess(lambda: session.settings_for(None).check_keep_warm)
        self.states: dict[str, Checked] = {}
        self.programs = WholePrograms(session, self.process)
        self._queue: dict[tuple[str, ...], CheckRequest] = {}
        self._running: CheckRequest | None = None
        self.pausing = Pause(self.battery)
        self.device: str | None = None
        """Where the last check ran."""
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        session.status.checks = self._state

    # --- asking for checks ----------------------------------------------------------------------------------------

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def edited(self, uri: str, wait: bool = True) -> None:
        """A document was edited or written: what was found is stale, and another check is due."""
        source = self.pairs.source_of(uri)
        if source is None:
            return
        self._make_stale(source)
        if self._checks_in_background(source):
            self._enqueue(source, self.session.settings_for(source).check_delay if wait else 0.0)

    def opened(self, uri: str) -> None:
        """A document was opened: what is known of its text is shown, and a conversion is checked where that is new."""
        source = self.pairs.source_of(uri)
        if source == uri:
            self._restore(source)
        elif source is not None:
            self.due(uri)

    def due(self, uri: str) -> None:
        """A document may be checked: what is not known of its present text is due."""
        source = self.pairs.source_of(uri)
        if source is None:
            return
        kept = self._restore(source)
        if kept is None:
            self.edited(uri)
            return
        settings = self.session.settings_for(source)
        lacking = kept.lacking(asked_of(*_asked(settings)), __version__)
        if settings.inlay_hints and not self.states[source].shapes:
            # The shapes of values are seen in a run alone.
            lacking = None
        if lacking == [] or not self._checks_in_background(source):
            return
        if self._running is not None and self._running.uri == source and self._running.ran is None:
            self._stop()
        waiting = self._queue.get((source,))
        self._enqueue(source, settings.check_delay, lacking if waiting is None else None)

    def _checks_in_background(self, source: str) -> bool:
        """Whether a pair is checked without being asked for."""
        allowed = self.session.settings_for(source).check and self.session.trusted
        return allowed and self.pairs.converted_of(source) is not None

    def _restore(self, source: str) -> Stored | None:
        """What was kept of the present texts, shown where nothing is known that holds; None where nothing was."""
        path, pair = to_path(source), self.pairs.converted_of(source)
        if path is None or pair is None:
            return None
        try:
            texts = self.pairs.text(source, path)[0], self.pairs.text(*pair)[0]
            kept = verdict_store.kept(path, texts[0], pair[1], texts[1])
        except T2JError:
            return None
        state = self.states.get(source)
        if kept is not None and (state is None or state.stale or not state.verdicts):
            forms = [report.form for report in kept.reports.values()]
            self.on_ran(source, pair, texts, forms)
            self._set(source, restored(kept, PairPlaces(self.pairs, source, pair[0])))
        return kept

    def _make_stale(self, source: str) -> None:
        state = self.states.get(source)
        if (state is not None and state.make_stale()) | self.programs.make_stale(source):
            self._publish(source)
            self.session.refresh_views()
        if self._running is not None and self._running.uri == source:
            self._stop()

    def _enqueue(self, source: str, delay: float, objects: list[str] | None = None) -> CheckRequest:
        request = self._queue.pop((source,), None) or CheckRequest(source, 0.0)
        request.due = asyncio.get_running_loop().time() + delay
        request.objects = objects
        self._queue[request.key] = request
        self._wake.set()
        if self._running is not None:
            self.session.status.announce_waiting()
        return request

    async def check(self, uri: str, objects: Sequence[str] | None = None) -> Checked:
        """Check now and wait for the verdict. Raises T2JError where that may not or can't be done."""
        request = self._enqueue(self._runnable(uri, "a check"), 0.0, list(objects) if objects else None)
        done: asyncio.Future[Checked] = asyncio.get_running_loop().create_future()
        request.done.append(done)
        return await done

    async def explain(self, uri: str, name: str) -> dict[str, Any]:
        """Run one object once more and answer with the values of both sides; a cancelled wait stops the run.

        Raises T2JError where that may not or can't be done.
        """
        loop = asyncio.get_running_loop()
        request = CheckRequest(self._runnable(uri, "comparing values"), loop.time(), [name])
        request.explained = loop.create_future()
        return await self._answered(request)

    async def run(self, uri: str) -> dict[str, Any]:
        """Run a program and its conversion as wholes, and answer with the report; a cancelled wait stops the run.

        Raises T2JError where that may not or can't be done.
        """
        loop = asyncio.get_running_loop()
        request = CheckRequest(self._runnable(uri, "a run"), loop.time(), ran=loop.create_future())
        return await self._answered(request)

    def _runnable(self, uri: str, what: str) -> str:
        """The source of a pair whose code may run. Raises T2JError."""
        if not self.session.trusted:
            raise T2JError(f"the workspace is not trusted, and {what} runs its code")
        source = self.pairs.source_of(uri)
        if source is None:
            raise T2JError("only .py files and notebooks are checked")
        return source

    async def _answered(self, request: CheckRequest) -> dict[str, Any]:
        """What the one who waits for a special request gets."""
        replaced = self._queue.pop(request.key, None)
        if replaced is not None:
            replaced.answer(Checked(problem="it was asked for once more"))
        self._queue[request.key] = request
        self._wake.set()
        assert request.waiting_for is not None
        try:
            return await request.waiting_for
        except asyncio.CancelledError:
            self._queue.pop(request.key, None)
            if self._running is request:
                self._stop()
            raise

    @property
    def is_running(self) -> bool:
        return self._running is not None

    def _state(self) -> CheckState:
        return CheckState(self.is_running, len(self._queue), self.pausing.reason, self.device)

    def cancel(self) -> None:
        """Stop the running check and forget those that wait."""
        for request in self._queue.values():
            request.answer(Checked(problem="the check was cancelled"))
        self._queue.clear()
        self._stop()

    def pause(self) -> None:
        """Let checks in the background wait; the running one is stopped and runs again later."""
        self.pausing.pause()
        running = self._running
        if running is not None and running.in_background:
            self._queue.setdefault(running.key, running)
            self._stop()
        else:
            self.session.status.announce_pause()

    def resume(self) -> None:
        """Go on with what waits."""
        self.pausing.resume()
        self.reconsider()
        self.session.status.announce_pause()

    def reconsider(self) -> None:
        """Look again at what waits: settings or a pause have changed."""
        self.process.stay_warm()
        self._wake.set()

    def _stop(self) -> None:
        self.process.cancel()

    # --- the queue ------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            now = asyncio.get_running_loop().time()
            if self.pausing.on_battery or any(r.in_background and r.due <= now for r in self._queue.values()):
                await self._look_at_battery()
                # What became due meanwhile is newer than what waits.
                now = asyncio.get_running_loop().time()
            due = [r for r in self._may_run() if r.due <= now]
            if due:
                request = self._queue.pop(due[-1].key)
                await self._one(request)
                continue
            await self._sleep()

    def _may_run(self) -> list[CheckRequest]:
        """What waits and is not held up by a pause."""
        return [r for r in self._queue.values() if self.pausing.reason is None or not r.in_background]

    async def _look_at_battery(self) -> None:
        before = self.pausing.reason
        await self.pausing.look(self.session.settings_for(None).check_on_battery)
        if self.pausing.reason != before:
            self.session.status.announce_pause()

    async def _sleep(self) -> None:
        """Wait until something is due, or may be."""
        now = asyncio.get_running_loop().time()
        moments = [r.due for r in self._may_run()]
        if self.pausing.on_battery:
            moments.append(now + LOOK)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), max(0.0, min(moments) - now) if moments else None)

    async def _one(self, request: CheckRequest) -> None:
        source = request.uri
        self._running = request
        title = f"Checking {Path(to_path(source) or source).name}"
        if request.explained is not None:
            title = f"Comparing the values of {', '.join(request.objects or ())}"
        elif request.ran is not None:
            title = f"Running {Path(to_path(source) or source).name} and its conversion"
        shown = self.session.client.shows_checks
        progress = StatusProgress(self.session, source) if shown else Progress(self.session, title, self.cancel)
        self.session.status.announce("checking", source)
        state: Checked | None = None
        try:
            if request.ran is None:
                state = await self._ask(request, progress)
            elif await self.programs.ask(request, progress) is not None:
                self._publish(source)
                self.session.refresh_views()
        except T2JError as error:
            state = Checked(problem=str(error))
        except Exception as error:  # the outermost guard of a check: the next one shall run
            log.exception("a check could not be run")
            state = Checked(problem=f"an error inside t2j: {type(error).__name__}")
        finally:
            self._running = None
            progress.end()
            self.session.status.announce("idle", source)
        if state is not None and request.ran is None:
            self._set(source, state)
        request.answer(state or Checked(problem="the check was cancelled"))

    async def _ask(self, request: CheckRequest, progress: Progress | StatusProgress) -> Checked | None:
        """Run one check; None where it was stopped or its texts were edited meanwhile."""
        source, objects = request.uri, request.objects
        path = to_path(source)
        if path is None:
            raise T2JError("only .py files and notebooks are checked")
        pair = self.pairs.converted_of(source)
        source_text, _ = self.pairs.text(source, path)
        converted_text = self.pairs.text(*pair)[0] if pair is not None else None
        settings = self.session.settings_for(source)
        answer = await self.process.run(
            {
                "source": str(path),
                "source_text": source_text,
                "converted": str(pair[1]) if pair is not None else None,
                "converted_text": converted_text,
                "objects": objects,
                **asked_of(*_asked(settings)),
                "target": settings.target,
                "scan": settings.scan,
                "layout": settings.layout,
                "timeout": settings.check_timeout,
                "readable": settings.readable,
                "shapes": settings.inlay_hints,
                "explain": request.explained is not None,
            },
            progress.report,
        )
        # The texts, and not their revisions: that a file was opened meanwhile changes nothing.
        now, revision = self.pairs.text(source, path)
        beside = self.pairs.text(*pair)[0] if pair is not None else None
        if answer is None or (now, beside) != (source_text, converted_text):
            return None
        if request.explained is not None and not request.explained.done():
            request.explained.set_result(answer)
        self.device = answer["device"]
        if pair is not None and converted_text is not None:
            self.on_ran(source, pair, (source_text, converted_text), answer["objects"])
        merged = merged_with(self.states.get(source), answer["objects"], objects)
        places = PairPlaces(self.pairs, source, pair[0] if pair is not None else None)
        differences = [f for verdict in answer["objects"] for f in differences_of(verdict, places)]
        cells = self.pairs.cells(source)
        shapes = {(cells.get(cell, source), line - 1): shape for cell, line, shape in answer["shapes"]}
        reason = answer["device_reason"]
        about = {"device_reason": reason, "containment": answer["containment"]}
        about["coverage"] = Coverage.from_json(answer["coverage"])
        return Checked(merged, answer["device"], False, None, differences, shapes, revision, **about)

    # --- results --------------------------------------------------------------------------------------------------

    def differences_in(self, uri: str) -> list[FoundDifference]:
        """The differences that are shown in a document."""
        known = (state.differences for states in (self.states, self.programs.states) for state in states.values())
        return [f for differences in known for f in differences if f.uri == uri]

    def diagnostics(self, uri: str) -> list[types.Diagnostic]:
        """The differences in a document, which may be one on disk, as diagnostics."""
        return diagnostics_of(self.session, self.differences_in(uri), self.session.store.document(uri))

    def _set(self, source: str, state: Checked) -> None:
        """Keep what is known of a pair, and show it."""
        self.states[source] = state
        self.on_known(source, state.verdicts)
        self._publish(source)
        self.session.refresh_views()
        self.session.protocol.notify(CHECKED, self.summary(source))

    def _publish(self, source: str) -> None:
        """Push what is known of both files of a pair."""
        pair = self.pairs.converted_of(source)
        for uri in dict.fromkeys([source, *([pair[0]] if pair is not None else [])]):
            self.on_differences(uri)

    def summary(self, source: str, name: str | None = None) -> dict[str, Any]:
        """What is known of a pair, for the client; verdict and message are on one of its objects where it is named."""
        pair = self.pairs.converted_of(source)
        converted = pair[0] if pair is not None else None
        return summary_of(self.states.get(source, Checked()), source, converted, name)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        await self.process.end()


def _asked(settings: Settings) -> tuple[str, str, str, str, str]:
    pythons = settings.torch_python, settings.jax_python
    return settings.check_stage, settings.check_device, *pythons, settings.initial_values
