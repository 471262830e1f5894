"""How many fixed bugs a prompt would hold for a gap: counted by the analysis process, and kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from t2j_lsp.lsp.analysis.service import AnalysisService

KEPT = 1000
"""Gaps whose numbers are kept, about."""


@dataclass(frozen=True)
class Gap:
    """A gap to find similar fixes for: its statement, and what the rules say of it."""

    statement: str
    name: str
    reason: str


class SimilarCounts:
    """How many fixed bugs are like a gap, by gap."""

    def __init__(self, service: AnalysisService) -> None:
        self._service = service
        self._known: dict[Gap, int] = {}

    def count(self, gap: Gap) -> int:
        """How many there are; 0 where nobody has counted yet."""
        return self._known.get(gap, 0)

    def unknown(self, gaps: Sequence[Gap]) -> list[Gap]:
        """The gaps for which nobody has counted yet, each once."""
        return [gap for gap in dict.fromkeys(gaps) if gap not in self._known]

    def look_up(self, gaps: Sequence[Gap]) -> asyncio.Future[list[int]]:
        """Has the analysis process look for fixes, and remembers how many there are."""
        asked = [(gap.statement, gap.name, gap.reason) for gap in gaps]
        counts = asyncio.ensure_future(self._service.ask_plain("similar", gaps=asked))

        def remember(done: asyncio.Future[list[int]]) -> None:
            if not done.cancelled() and done.exception() is None:
                if len(self._known) > KEPT:
                    self._known.clear()
                self._known.update(zip(gaps, done.result(), strict=True))

        counts.add_done_callback(remember)
        return counts
