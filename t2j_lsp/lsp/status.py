"""``t2j/status``: what the server is doing, for a status item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

STATUS = "t2j/status"


@dataclass(frozen=True)
class CheckState:
    """What the checks are at: whether one runs, how many are due behind it, and why those in the background wait."""

    is_running: bool = False
    waiting: int = 0
    pause: str | None = None
    device: str | None = None
    """Where the last check ran."""


class Status:
    """What was announced last, so that nothing is said twice."""

    def __init__(self, notify: Callable[[str, dict[str, Any]], None]) -> None:
        self._notify = notify
        self.checks: Callable[[], CheckState] = CheckState
        """Asked for the state of the checks, which is part of what is announced."""
        self._announced: dict[str, Any] = {}
        self._about: str | None = None

    def announce(self, state: str, uri: str | None = None, message: str | None = None) -> None:
        """The state is starting, idle, analysing, checking or error.

        Instead of ``idle`` it is ``paused``, with ``reason``, while checks in the background wait. ``device`` is where
        the last check ran. While one runs it is ``checking``, with the step that it is at as ``message``, and how many
        are ``waiting`` behind it: an analysis meanwhile is not said.
        """
        checks = self.checks()
        if checks.is_running and state in ("idle", "analysing"):
            return
        paused = checks.pause if state == "idle" else None
        known: dict[str, Any] = {"state": "paused", "reason": paused} if paused is not None else {"state": state}
        if state == "checking":
            known |= {"message": message} if message else {}
            known |= {"waiting": checks.waiting} if checks.waiting else {}
        if checks.device is not None:
            known["device"] = checks.device
        if known != self._announced:
            self._announced = known
            self._about = uri
            self._notify(STATUS, {**known, **({"uri": uri} if uri else {})})

    def announce_waiting(self) -> None:
        """Say how many checks wait by now behind the running one."""
        self.announce("checking", self._about, self._announced.get("message"))

    def announce_pause(self) -> None:
        """Say that checks pause, or do no longer, where nothing else is said at this moment."""
        if self._announced.get("state") in ("idle", "paused"):
            self.announce("idle")
