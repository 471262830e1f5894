"""One server for the tests that leave no trace in it, and fresh ones for those that do."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("pygls", reason="the language server's extra is not installed")

from .client import Client, Json

_numbers = itertools.count()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server as VS Code starts it, without a workspace and not trusted."""
    with Client(log=tmp_path_factory.mktemp("server") / "log") as client:
        client.initialize()
        yield client


@pytest.fixture
def uri() -> str:
    """A document that no other test has."""
    return f"untitled:document{next(_numbers)}.py"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Client]]:
    """Servers by what they were started with, until the last test of a file."""
    started: dict[str, Client] = {}
    with contextlib.ExitStack() as stack:

        def of(*settings: Json | None) -> Client:
            key = json.dumps(settings)
            if key not in started:
                log = tmp_path_factory.mktemp("server") / "log"
                started[key] = stack.enter_context(Client(log=log))
                started[key].initialize(None, *settings)
            return started[key]

        yield of


@pytest.fixture
def lent(servers: Callable[..., Client]) -> Callable[..., Client]:
    """``lent(caps, options)``: a server that tests of the file have one after the other, each with files of its own.

    For tests that open documents without a workspace and change no settings.
    """

    def begin(caps: Json | None = None, options: Json | None = None) -> Client:
        client = servers(caps, options)
        client.start_over()
        return client

    return begin


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Client]]:
    """``start(caps=..., options=..., root=...)``: a server of the test's own."""
    clients: list[Client] = []

    def begin(
        caps: Json | None = None,
        options: Json | None = None,
        root: Path | None = None,
        folders: tuple[Path, ...] = (),
        env: dict[str, str] | None = None,
        tcp: bool = False,
    ) -> Client:
        client = Client(tcp=tcp, log=None if tcp else tmp_path / f"log{len(clients)}", env=env)
        clients.append(client)
        client.initialize(root, caps, options, folders)
        return client

    yield begin
    for client in clients:
        client.close()
