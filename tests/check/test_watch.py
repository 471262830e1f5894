"""Trees of processes and their memory, by psutil and by the system's files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from t2j_lsp.check.process import processes, watch
from t2j_lsp.check.process.processes import TAG

PROGRAM = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import sys; print(1, flush=True); sys.stdin.read()"])
child.wait()
"""
WITH_AND_WITHOUT = pytest.mark.parametrize("by_psutil", [True, False])


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a child that runs by now, both with a tag."""
    environment = {**os.environ, TAG: "of-this-test"}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=pipe, stdout=pipe, env=environment) as process:
        assert process.stdout is not None and process.stdout.readline() == b"1\n"
        yield process
        process.kill()


@pytest.fixture
def without(by_psutil: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not by_psutil:
        monkeypatch.setattr(watch, "_psutil", lambda: None)


def test_both_find_the_same_tree(parent: subprocess.Popen[bytes]) -> None:
    result = watch.tree_by_psutil(parent.pid)
    assert result == processes.tree(parent.pid) and len(result) == 2


@WITH_AND_WITHOUT
@pytest.mark.usefixtures("without")
def test_memory_is_that_of_all(parent: subprocess.Popen[bytes]) -> None:
    tree = watch.tree(parent.pid)
    assert watch.resident(tree) == sum(watch.resident([pid]) for pid in tree) > 2_000_000
    assert watch.resident(tree) == processes.resident(tree)


@WITH_AND_WITHOUT
@pytest.mark.usefixtures("without")
def test_what_has_the_tag_is_killed_and_nothing_else(parent: subprocess.Popen[bytes]) -> None:
    assert watch.kill_tagged("of-another") == 0 and parent.poll() is None
    assert watch.kill_tagged("of-this-test") >= 2
    assert parent.wait(20) < 0
