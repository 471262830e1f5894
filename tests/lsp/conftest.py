"""One server for the tests that leave no trace in it, others that tests take in turn, and fresh ones for the rest."""

from __future__ import annotations

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


class Lender:
    """Servers by what they were started with; the ones lent last stay for the next test that wants the same."""

    KEPT = 3

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._idle: dict[str, Client] = {}

    def lend(self, caps: Json | None, options: Json | None) -> tuple[str, Client]:
        key = json.dumps([caps, options], sort_keys=True)
        client = self._idle.pop(key, None)
        if client is None:
            client = Client(log=self._folder / f"log{next(_numbers)}")
            client.initialize(None, caps, options)
        return key, client

    def take_back(self, key: str, client: Client) -> None:
        try:
            client.reset()
        except Exception:
            client.close()
            raise
        self._idle[key] = client
        if len(self._idle) > self.KEPT:
            self._idle.pop(next(iter(self._idle))).close()

    def close(self) -> None:
        for client in self._idle.values():
            client.close()


@pytest.fixture(scope="session")
def lender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lender]:
    lender = Lender(tmp_path_factory.mktemp("lent"))
    yield lender
    lender.close()


@pytest.fixture
def lent(lender: Lender) -> Iterator[Callable[..., Client]]:
    """``lent(caps, options)``: a server as `start` gives one, which tests before may have used, and tests after will.

    For tests that neither end it nor change its settings. What they open is closed for them.
    """
    borrowed: list[tuple[str, Client]] = []

    def borrow(caps: Json | None = None, options: Json | None = None) -> Client:
        borrowed.append(lender.lend(caps, options))
        return borrowed[-1][1]

    yield borrow
    for key, client in borrowed:
        lender.take_back(key, client)


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
