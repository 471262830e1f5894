"""Runs the server with its features, over standard input and output or for one client over TCP."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
from concurrent.futures import Future
from typing import Any

from t2j_lsp.child.streams import guard_stdio
from t2j_lsp.lsp.features import (
    actions,
    ask,
    commands,
    configuration,
    containment,
    conversions,
    convert_and_check,
    counterpart,
    explain_difference,
    fixes,
    hints,
    hover,
    inputs,
    lenses,
    pausing,
    pull,
    workspace,
)

from .server import Server
from .transport import BlockingWriter, read_messages, read_stream

FEATURES = (
    hover,
    actions,
    lenses,
    inputs,
    hints,
    commands,
    conversions,
    convert_and_check,
    counterpart,
    ask,
    containment,
    explain_difference,
    fixes,
    workspace,
    pausing,
    configuration,
    pull,
)
SETTLE = 1.0
"""Seconds after the start at which memory is tidied up."""


def server_with_features() -> Server:
    """A server that answers all that t2j does in an editor."""
    server = Server()
    for feature in FEATURES:
        feature.register(server)
    return server


def serve(address: tuple[str, int] | None, log_level: str) -> int:
    """Run the server until the client is done with it, and return the exit code."""
    streams = None if address is not None else guard_stdio()
    logging.basicConfig(stream=sys.stderr, level=log_level.upper(), format="%(asctime)s %(levelname)s %(message)s")
    # pygls logs messages with their contents.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    try:
        return asyncio.run(_serve(address, streams))
    except KeyboardInterrupt:
        return 130


async def _serve(address: tuple[str, int] | None, streams: Any) -> int:
    server = server_with_features()
    loop = asyncio.get_running_loop()

    def handle(body: bytes | None) -> None:
        if body is None:
            server.ended.set()
        else:
            server.protocol.receive(body)

    loop.call_later(SETTLE, _settle_memory)
    if streams is not None:
        source, sink = streams
        writer: Any = BlockingWriter(sink)
        server.protocol.set_writer(writer)
        post = lambda body: loop.call_soon_threadsafe(handle, body)  # noqa: E731
        threading.Thread(target=_read, args=(source, post), name="t2j-reader", daemon=True).start()
        await server.ended.wait()
        writer.close()
    else:
        assert address is not None
        await _serve_tcp(server, address, handle)
    await server.stop()
    for task in server.background:
        task.cancel()
    if server.exit_code is None:
        return 0
    return server.exit_code


def _settle_memory() -> None:
    """Take what the start has made out of the garbage collector's sight: looking through it costs tens of ms."""
    gc.collect()
    gc.freeze()
    gc.enable()


def _read(source: Any, post: Any) -> None:
    try:
        read_messages(source, post)
    except RuntimeError:
        return  # The loop is closed: the server has ended.


async def _serve_tcp(server: Server, address: tuple[str, int], handle: Any) -> None:
    """Serve one client; a second one is turned away while the first is there."""
    taken: Future[None] = Future()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if taken.done():
            writer.close()
            return
        taken.set_result(None)
        server.protocol.set_writer(writer)
        await read_stream(reader, handle)

    listening = await asyncio.start_server(connected, *address)
    host, port = listening.sockets[0].getsockname()[:2]
    print(f"listening on {host}:{port}", file=sys.stderr, flush=True)
    async with listening:
        await server.ended.wait()
