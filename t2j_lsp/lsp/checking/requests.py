"""A check that was asked for, or that is due in the background, and who waits for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from t2j_lsp.contract import T2JError

from .verdicts import Checked


@dataclass
class CheckRequest:
    """A check of a pair, or of some of its objects, from the moment ``due`` on."""

    uri: str
    due: float
    objects: list[str] | None = None
    done: list[asyncio.Future[Checked]] = field(default_factory=list)
    explained: asyncio.Future[dict[str, Any]] | None = None
    """Gets the check process's answer with the values of both sides, where these are asked for."""
    ran: asyncio.Future[dict[str, Any]] | None = None
    """Gets the report on both programs as wholes, where they are to be run."""

    @property
    def in_background(self) -> bool:
        """Whether nobody waits for it."""
        return not self.done and self.waiting_for is None

    @property
    def waiting_for(self) -> asyncio.Future[dict[str, Any]] | None:
        """What the one who waits gets, where it is no verdict on classes and functions."""
        return self.explained or self.ran

    @property
    def key(self) -> tuple[str, ...]:
        """Requests of one key stand for each other, the last one for all."""
        if self.ran is not None:
            return self.uri, ""
        return (self.uri,) if self.explained is None else (self.uri, *(self.objects or ()))

    def answer(self, state: Checked) -> None:
        """Tell whoever waits what came out."""
        for done in self.done:
            if not done.done():
                done.set_result(state)
        if self.waiting_for is not None and not self.waiting_for.done():
            self.waiting_for.set_exception(T2JError(state.problem or "the check gave no values"))
