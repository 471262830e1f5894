"""Bytes in and out, over standard input and output and over TCP."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Callable
from typing import BinaryIO

log = logging.getLogger("t2j.lsp")

_LENGTH = re.compile(rb"content-length:\s*(\d+)\s*$", re.IGNORECASE)
MAX_MESSAGE = 256 * 1024 * 1024


class BlockingWriter:
    """Writes whole messages. A client that does not read blocks the writing thread, and not the event loop."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._waiting: list[bytes] = []
        self._wake = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="t2j-writer", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        with self._wake:
            self._waiting.append(data)
            self._wake.notify()

    def close(self) -> None:
        """Write what is waiting, for a second at most, and end."""
        with self._wake:
            self._ended = True
            self._wake.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join(1.0)

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._waiting and not self._ended:
                    self._wake.wait()
                data, self._waiting = b"".join(self._waiting), []
                if not data and self._ended:
                    return
            try:
                view = memoryview(data)
                while view:
                    view = view[self._stream.write(view) or 0 :]
                self._stream.flush()
            except (OSError, ValueError):
                return


def read_messages(stream: BinaryIO, handle: Callable[[bytes | None], None]) -> None:
    """Read messages until the stream ends and hand over each body, then None. Lines that are no header are skipped."""
    while True:
        body = _read_message(stream.readline, stream.read)
        handle(body)
        if body is None:
            return


def _read_message(readline: Callable[[], bytes], read: Callable[[int], bytes]) -> bytes | None:
    length: int | None = None
    while True:
        line = readline()
        if not line:
            return None
        match = _LENGTH.match(line.strip())
        if match:
            length = int(match[1])
        elif not line.strip() and length is not None:
            break
    if length > MAX_MESSAGE:
        log.error("a message of %d bytes is over the limit", length)
        return None
    parts: list[bytes] = []
    while length:
        part = read(length)
        if not part:
            return None
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


async def read_stream(reader: asyncio.StreamReader, handle: Callable[[bytes | None], None]) -> None:
    """What `read_messages` does, for a TCP connection."""
    while True:
        length: int | None = None
        try:
            while True:
                line = await reader.readline()
                if not line:
                    handle(None)
                    return
                match = _LENGTH.match(line.strip())
                if match:
                    length = int(match[1])
                elif not line.strip() and length is not None:
                    break
            if length > MAX_MESSAGE:
                log.error("a message of %d bytes is over the limit", length)
                handle(None)
                return
            handle(await reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            handle(None)
            return
