"""One server for the tests that leave no trace in it, and fresh ones for those that do."""

from __future__ import annotations

import itertools
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
