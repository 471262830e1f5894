"""The child's side: requests are read on one thread and answered one by one on the main one."""

from __future__ import annotations

import _thread
import contextlib
import json
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from t2j_lsp.contract import T2JError

from .frames import JSON, NO_TAG, Codec, ProtocolError, message, read_frame
from .streams import guard_stdio

NAMES = 6
"""Places of an unexpected error that are told."""


class Interrupted(BaseException):
    """The running request is not wanted any more."""


class Requests:
    """The requests of the parent. Made first of all: from then on, nothing else reaches the pipes.

    Args:
        codec: how arguments and values cross.
        refusals: the errors that are answers. One of a derived class crosses as the class that is named here.
        interrupts: whether `Interrupted` is raised in a request that is cancelled; else it asks `is_cancelled`.
        finishes: whether a request still stops by itself where the parent is gone; else the process ends at once.
    """

    def __init__(
        self,
        codec: Codec = JSON,
        refusals: tuple[type[Exception], ...] = (T2JError,),
        *,
        interrupts: bool = False,
        finishes: bool = False,
    ) -> None:
        self._codec = codec
        self._refusals = refusals
        self._interrupts = interrupts
        self._finishes = finishes
        self._waiting: queue.SimpleQueue[tuple[dict[str, Any], bytes] | None] = queue.SimpleQueue()
        self._running: int | None = None
        self._unwanted = 0
        """Requests up to this number are to stop, whether they have begun or not."""
        self._writing = threading.Lock()
        self._source, self._sink = guard_stdio()
        if interrupts:
            signal.signal(signal.SIGINT, self._signalled)
        threading.Thread(target=self._read, daemon=True).start()

    # --- for the handlers -----------------------------------------------------------------------------------------

    def is_cancelled(self) -> bool:
        """Whether the running request is not wanted any more."""
        return self._running is not None and self._running <= self._unwanted

    def progress(self, step: Any) -> None:
        """Tell the parent how far the running request is. May be called on any thread."""
        self._send({"id": self._running, "answer": "progress"}, self._codec.dumps(step))

    # --- the loop -------------------------------------------------------------------------------------------------

    def answer(self, handlers: Mapping[str, Callable[..., Any]], when_idle: Callable[[], Any] = lambda: None) -> None:
        """Answer requests until the parent is gone; a handler takes a request's arguments as keywords."""
        while (request := self._waiting.get()) is not None:
            about, data = request
            kind, answer = self._answer(handlers, about, data)
            self._send({"id": about["id"], "answer": kind}, answer)
            if self._waiting.empty():
                when_idle()

    def _answer(self, handlers: Mapping[str, Callable[..., Any]], about: dict[str, Any], data: bytes) -> Any:
        try:
            self._running = about["id"]
            try:
                if self.is_cancelled():
                    return "cancelled", b""
                answer = "value", self._codec.dumps(handlers[about["operation"]](**self._codec.loads(data)))
                return ("cancelled", b"") if self.is_cancelled() else answer
            finally:
                self._running = None
        except Interrupted:
            return "cancelled", b""
        except self._refusals as error:
            index = next(i for i, kind in enumerate(self._refusals) if isinstance(error, kind))
            return "refused", json.dumps([index, str(error)]).encode()
        except Exception as error:  # noqa: BLE001 - the outermost guard of a request
            return "failed", described(error).encode()

    def _send(self, about: dict[str, Any], data: bytes) -> None:
        view = memoryview(message(about, data))
        with self._writing, contextlib.suppress(OSError):
            while view:
                view = view[self._sink.write(view) or 0 :]

    # --- requests in ----------------------------------------------------------------------------------------------

    def _read(self) -> None:
        # What is cut off or garbled comes of a parent that is going away.
        with contextlib.suppress(ProtocolError, ValueError, KeyError):
            while True:
                text, data = read_frame(NO_TAG, self._exactly)
                self._take(json.loads(text), data)
        if not self._finishes:
            os._exit(0)
        self._unwanted = sys.maxsize
        self._waiting.put(None)

    def _exactly(self, count: int) -> bytes:
        data = self._source.read(count)
        if len(data) < count:
            raise ProtocolError("the parent is gone")
        return data

    def _take(self, about: dict[str, Any], data: bytes) -> None:
        if about["operation"] != "cancel":
            self._waiting.put((about, data))
            return
        self._unwanted = max(self._unwanted, about["id"])
        if self._interrupts:
            # Runs the handler of the signal on the main thread, on every platform.
            _thread.interrupt_main(signal.SIGINT)

    def _signalled(self, number: int, frame: Any) -> None:
        if self.is_cancelled():
            self._running = None
            raise Interrupted


def described(error: BaseException) -> str:
    """An error by its type and where it came from. No message: that may hold the user's code, or a key."""
    frames = traceback.extract_tb(error.__traceback__)[-NAMES:]
    return f"{type(error).__name__} at {' '.join(f'{Path(f.filename).name}:{f.lineno}' for f in frames)}"


def step_back() -> None:
    """Let other processes go first: whoever types does not wait for this one."""
    if hasattr(os, "nice"):
        os.nice(10)
