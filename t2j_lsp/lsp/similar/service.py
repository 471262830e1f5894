"""The server's side: what fixed bugs are like each gap and difference, looked up once and off every request's path."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from typing import Any

from t2j_lsp.child.process import Child, ChildDied, ChildFailed
from t2j_lsp.contract import Finding, Severity, T2JError, VerdictKind
from t2j_lsp.fixes.offers import key_of_gap
from t2j_lsp.lsp.checking.service import CheckService
from t2j_lsp.lsp.documents import Program
from t2j_lsp.lsp.paths import to_path
from t2j_lsp.lsp.session import Session

log = logging.getLogger("t2j.lsp")

KEEP_WARM = 300.0
"""Seconds that the process is kept without being asked."""
MOST = 2000
"""Gaps and differences whose offers are remembered; beyond that all of them are looked up anew."""

Rows = list[dict[str, Any]]


class SimilarService:
    """Everything here happens on the event loop; the fixed bugs are read by a process that starts on the first use."""

    def __init__(self, session: Session, checks: CheckService) -> None:
        self.session = session
        self._checks = checks
        self._gaps: dict[tuple[str, ...], Rows] = {}
        self._differences: dict[tuple[str, ...], Rows] = {}
        self._asked: set[tuple[str, ...]] = set()
        self._process = Child("t2j_lsp.lsp.similar.process", keep_warm=lambda: KEEP_WARM)

    # --- what is known ------------------------------------------------------------------------------------------------

    def for_gap(self, finding: Finding, lines: Sequence[str]) -> Rows:
        """What is known to be like a gap; ``lines`` are those of the text that its span is about."""
        return self._gaps.get(key_of_gap(finding, lines), [])

    def for_difference(self, source: str, name: str) -> Rows:
        """What is known to be like the difference that the last check of a file found in an object."""
        verdict = self._verdict(source, name)
        return self._differences.get(_key(source, verdict), []) if verdict is not None else []

    # --- looking up ---------------------------------------------------------------------------------------------------

    def analysed(self, program: Program) -> None:
        """A program has a new analysis: look its gaps up, as far as they are new."""
        current = self.session.service.current(program)
        if current is None or program.is_notebook or not self.session.settings_for(program.uri).hover:
            return
        known = self.session.service.known[program.uri]
        if known.revision != program.revision:
            return
        gaps = [f for f in current[0].findings if f.severity is Severity.GAP]
        new = {key_of_gap(f, program.lines): f for f in gaps}
        new = {key: f for key, f in new.items() if key not in self._gaps and key not in self._asked}
        if new:
            self._make_room(self._gaps)
            self._asked |= new.keys()
            self.session.spawn(self._look_up_gaps(new, program.text))

    async def _look_up_gaps(self, gaps: dict[tuple[str, ...], Finding], source: str) -> None:
        try:
            rows = await self.ask("gaps", gaps=[f.to_json() for f in gaps.values()], source=source)
            self._gaps |= dict(zip(gaps, rows, strict=True))
        except T2JError as error:
            log.warning("fixed bugs: %s", error)
        finally:
            self._asked -= gaps.keys()

    def checked(self, source: str, verdicts: Iterable[dict[str, Any]]) -> None:
        """A file has new verdicts: look up what is like its differences."""
        for verdict in verdicts:
            if verdict["verdict"] == VerdictKind.DIFFERENT and _key(source, verdict) not in self._differences:
                self.session.spawn(self.like_difference(source, verdict))

    async def like_difference(self, source: str, verdict: dict[str, Any]) -> Rows:
        """Fixed bugs like a difference, by its verdict in the form of the report; none where they can't be had."""
        key = _key(source, verdict)
        if key not in self._differences:
            texts = self._texts(source)
            if texts is None:
                return []
            try:
                rows: Rows = await self.ask("verdict", verdict=verdict, source=texts[0], converted=texts[1])
            except T2JError as error:
                log.warning("fixed bugs: %s", error)
                return []
            self._make_room(self._differences)
            self._differences[key] = rows
        return self._differences[key]

    def _verdict(self, source: str, name: str) -> dict[str, Any] | None:
        state = self._checks.states.get(source)
        return next((v for v in state.verdicts if v["name"] == name), None) if state is not None else None

    def _texts(self, source: str) -> tuple[tuple[str, str], tuple[str, str]] | None:
        """Path and text of a file and of its conversion; None where there is none, or one can't be read."""
        pairs = self.session.pairs
        path, pair = to_path(source), pairs.converted_of(source)
        if path is None or pair is None or pairs.is_notebook(source):
            return None
        try:
            return (str(path), pairs.text(source, path)[0]), (str(pair[1]), pairs.text(*pair)[0])
        except T2JError:
            return None

    def _make_room(self, known: dict[tuple[str, ...], Rows]) -> None:
        if len(known) >= MOST:
            known.clear()

    def forget(self) -> None:
        """There are other fixed bugs than before."""
        self._gaps.clear()
        self._differences.clear()

    # --- the process ----------------------------------------------------------------------------------------------

    async def ask(self, operation: str, **about: Any) -> Any:
        """The process's answer. Raises T2JError with what went wrong. A cancelled wait leaves the question running."""
        return await asyncio.shield(self.session.spawn(self._ask(operation, about)))

    async def _ask(self, operation: str, about: dict[str, Any]) -> Any:
        try:
            return await self._process.ask(operation, about)
        except ChildDied:
            raise T2JError("the process that knows them ended; see the log") from None
        except ChildFailed as error:
            raise T2JError(f"an error inside t2j: {error}") from None

    async def close(self) -> None:
        await self._process.end()


def _key(source: str, verdict: dict[str, Any]) -> tuple[str, ...]:
    """What offers for a difference depend on."""
    return (source, verdict["name"], str(verdict["reason"]), json.dumps(verdict["divergence"], sort_keys=True))
