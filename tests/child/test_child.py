"""A child process over its pipes: answers, refusals, failures, cancelling, death, replacement, and idle ends."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from t2j_lsp.child.frames import HEAD, MAGIC, MAX_TEXT, NO_TAG, ProtocolError, frame, read_frame
from t2j_lsp.child.process import Cancelled, Child, ChildDied, ChildFailed, ChildNotStarted
from t2j_lsp.contract import T2JError

from .echo import LETTERS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the child find the module of this folder."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def with_child(work: Callable[[Child], Awaitable[None]], keep_warm: Callable[[], float] | None = None) -> None:
    """Run a coroutine with a child, and end that."""

    async def run() -> None:
        child = Child("tests.child.echo", keep_warm=keep_warm)
        try:
            await asyncio.wait_for(work(child), 60)
        finally:
            await child.end()

    asyncio.run(run())


def test_values_cross_and_stray_output_does_not() -> None:
    async def work(child: Child) -> None:
        assert child.pid is None
        for value in (None, [1, {"a": 2.5}], LETTERS, "x" * 3_000_000):
            assert await child.ask("echo", {"value": value}) == value
        assert await child.ask("stray", {"text": "ours"}) == "ours"
        answers = [child.ask("echo", {"value": number}) for number in range(20)]
        assert await asyncio.gather(*answers) == list(range(20))

    with_child(work)


def test_a_refusal_has_its_text_and_a_failure_only_its_place() -> None:
    async def work(child: Child) -> None:
        with pytest.raises(T2JError, match="not that"):
            await child.ask("refuse", {"text": "not that"})
        with pytest.raises(ChildFailed, match=r"^IndexError at .*echo\.py:\d+$") as failed:
            await child.ask("fail", {"secret": "a key"})
        assert "key" not in str(failed.value)
        pid = child.pid
        assert await child.ask("echo", {"value": 1}) == 1 and child.pid == pid

    with_child(work)


def test_a_cancelled_request_ends_and_the_process_stays() -> None:
    async def work(child: Child) -> None:
        assert not child.cancel()
        begun = asyncio.Event()
        waiting = asyncio.create_task(child.ask("wait", {}, lambda step: begun.set()))
        await begun.wait()
        pid = child.pid
        assert child.is_running and child.cancel() and not child.cancel()
        with pytest.raises(Cancelled):
            await waiting
        assert await child.ask("echo", {"value": 1}) == 1 and child.pid == pid

    with_child(work)


def test_a_request_that_nobody_waits_for_ends_its_process() -> None:
    async def work(child: Child) -> None:
        begun = asyncio.Event()
        waiting = asyncio.create_task(child.ask("wait", {}, lambda step: begun.set()))
        await begun.wait()
        pid = child.pid
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await child.ask("echo", {"value": 1}) == 1 and child.pid not in (pid, None)

    with_child(work)


def test_one_that_died_is_told_and_replaced() -> None:
    async def work(child: Child) -> None:
        with pytest.raises(ChildDied) as died:
            await child.ask("die", {})
        assert died.value.code == 7 and not child.is_alive
        assert await child.ask("echo", {"value": 1}) == 1

    with_child(work)


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path) -> None:
    async def work(child: Child) -> None:
        with pytest.raises(ChildNotStarted, match=r"python can't be run: No such file"):
            await child.ask("echo", {"value": 1}, python=str(tmp_path / "python"))

    with_child(work)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux tells when a process has ended by a descriptor")
def test_one_that_is_not_asked_ends() -> None:
    async def work(child: Child) -> None:
        begun, gone = asyncio.Event(), asyncio.Event()
        waiting = asyncio.create_task(child.ask("wait", {}, lambda step: begun.set()))
        await begun.wait()
        assert child.pid is not None
        asyncio.get_running_loop().add_reader(os.pidfd_open(child.pid), gone.set)
        child.cancel()
        with pytest.raises(Cancelled):
            await waiting
        await gone.wait()
        assert await child.ask("echo", {"value": 1}) == 1

    with_child(work, keep_warm=lambda: 0.0)


@pytest.mark.parametrize(
    "data",
    [
        b"hello, this is no head!!",
        HEAD.pack(MAGIC, b"87654321", 2, 0) + b"{}",
        HEAD.pack(MAGIC, NO_TAG, MAX_TEXT + 1, 0),
        HEAD.pack(MAGIC, NO_TAG, 2, 1 << 40) + b"{}",
    ],
)
def test_garbage_is_recognised(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_frame(NO_TAG, io.BytesIO(data).read)


def test_a_frame_has_its_text_and_its_data() -> None:
    whole = b"".join(frame(b"12345678", b"{}", [b"ab", b"c"]))
    assert read_frame(b"12345678", io.BytesIO(whole).read) == (b"{}", b"abc")
