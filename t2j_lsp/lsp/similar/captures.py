"""Keeps the user's own fixes, where they want that: what a check found to differ, and a later one to be equivalent."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lsprotocol import types

from t2j_lsp.contract import T2JError, VerdictKind
from t2j_lsp.lsp.paths import to_path
from t2j_lsp.lsp.session import Session
from t2j_lsp.lsp.similar.service import SimilarService

log = logging.getLogger("t2j.lsp")

Texts = tuple[tuple[Path, str], tuple[Path, str]]
"""A PyTorch file and its conversion, each with its text."""


class Captures:
    """What differed at last, until it is equivalent. Nothing is remembered unless ``fixes.keep`` is on."""

    def __init__(self, session: Session, similar: SimilarService) -> None:
        self.session = session
        self._similar = similar
        self._failed: dict[tuple[str, str], tuple[dict[str, Any], Texts]] = {}

    def checked(
        self, source: str, converted: tuple[str, Path], texts: tuple[str, str], verdicts: Iterable[Any]
    ) -> None:
        """There are verdicts on two texts: those that differ are remembered, and fixes of earlier ones are kept."""
        path = to_path(source)
        kept = self.session.settings_for(source).keep_fixes and not self.session.pairs.is_notebook(source)
        if path is None or not kept:
            self._failed = {key: one for key, one in self._failed.items() if key[0] != source}
            return
        now: Texts = (path, texts[0]), (converted[1], texts[1])
        for verdict in verdicts:
            key = source, verdict["name"]
            if verdict["verdict"] == VerdictKind.DIFFERENT:
                self._failed[key] = verdict, now
            elif verdict["verdict"] == VerdictKind.EQUIVALENT and key in self._failed:
                failed, before = self._failed.pop(key)
                # Of another PyTorch program the faulty code may have been a right conversion.
                if before[0] == now[0]:
                    self.session.spawn(self._keep(failed, before, now))

    async def _keep(self, verdict: dict[str, Any], before: Texts, now: Texts) -> None:
        source, faulty, fixed = ([str(path), text] for path, text in (now[0], before[1], now[1]))
        try:
            identity = await self._similar.ask("keep", verdict=verdict, source=source, faulty=faulty, fixed=fixed)
        except T2JError as error:
            log.warning("a fix could not be kept: %s", error)
            return
        if identity is not None:
            self._similar.forget()
            said = f"Your fix of {verdict['name']} is kept on this machine: t2j fixes --show {identity}"
            self.session.window_log_message(types.LogMessageParams(types.MessageType.Info, said))
