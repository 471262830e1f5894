"""Progress of long work, shown by the client and cancelled from there."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from lsprotocol import types

from .session import Session


class StatusProgress:
    """A check, shown by ``t2j/status`` alone: all checks in one place."""

    def __init__(self, session: Session, uri: str) -> None:
        self._session = session
        self._uri = uri

    def report(self, message: str) -> None:
        """Say which step the check is at."""
        self._session.status.announce("checking", self._uri, message)

    def end(self) -> None:
        """Whoever runs the checks says what comes next."""


class Progress:
    """One piece of work. Silent where the client shows no progress.

    ``token`` is that of the request, from a client that shows and cancels it itself.
    """

    def __init__(
        self, session: Session, title: str, cancel: Callable[[], None], token: int | str | None = None
    ) -> None:
        self._session = session
        self._token = token if token is not None else f"t2j-{uuid.uuid4()}"
        self._cancel = cancel
        self._begun = False
        self._ended = False
        self._last = ""
        if token is not None:
            self._begun = True
            self._notify(types.WorkDoneProgressBegin(title))
        elif session.client.progress:
            session.spawn(self._begin(title))

    async def _begin(self, title: str) -> None:
        session, token = self._session, str(self._token)
        await session.protocol.ask(types.WINDOW_WORK_DONE_PROGRESS_CREATE, types.WorkDoneProgressCreateParams(token))
        if self._ended:
            return
        self._begun = True
        session.progress_cancels[token] = self._cancel
        self._notify(types.WorkDoneProgressBegin(title, cancellable=True, message=self._last or None))

    def report(self, message: str) -> None:
        """Say which step the work is at."""
        self._last = message
        if self._begun and not self._ended:
            self._notify(types.WorkDoneProgressReport(message=message, cancellable=True))

    def end(self) -> None:
        self._ended = True
        self._session.progress_cancels.pop(str(self._token), None)
        if self._begun:
            self._notify(types.WorkDoneProgressEnd())

    def _notify(
        self, value: types.WorkDoneProgressBegin | types.WorkDoneProgressReport | types.WorkDoneProgressEnd
    ) -> None:
        self._session.protocol.notify(types.PROGRESS, types.ProgressParams(self._token, value))
