"""Folders that checks use: compiled programs by project, below a limit; scratch folders, gone with their owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from t2j_lsp.check.process.compile_cache import open_cache, project_of, trim
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.scratch import Scratch, remove_abandoned
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import VerdictKind
from tests.lsp.client import Client


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of a new machine: it is not there."""
    monkeypatch.setenv("T2J_CACHE", str(tmp_path / "home" / ".cache" / "t2j"))
    return tmp_path / "home" / ".cache" / "t2j"


def test_the_first_check_on_a_new_machine_fills_the_cache_of_its_project_alone(cache: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").touch()
    source = project / "source.py"
    source.write_text("import torch\n\n# t2j: x=f32[3]\ndef f(x):\n    return torch.sin(x) * 2\n")
    text = "import jax.numpy as jnp\n\ndef f(x):\n    return jnp.sin(x) * 2\n"
    with Pool(device="cpu", project=project_of(source)) as pool:
        assert check_files(source, text, pool=pool).verdict is VerdictKind.EQUIVALENT
    (folder,) = (cache / "xla").iterdir()
    assert [one for one in folder.iterdir() if one.name.endswith("-cache")]
    assert open_cache(project) == folder
    assert open_cache(tmp_path / "other") != folder


def test_a_project_is_the_innermost_folder_that_looks_like_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder).resolve() / "work"
        inner = work / "inner"
        (inner / "models").mkdir(parents=True)
        source = inner / "models" / "net.py"
        assert project_of(source) == inner / "models"
        (work / ".git").mkdir()
        assert project_of(source) == work
        (inner / "pyproject.toml").touch()
        assert project_of(source) == inner
        monkeypatch.setenv("HOME", str(inner))
        assert project_of(source) == work, "a home folder is no project"


def test_above_the_limit_the_programs_used_longest_ago_go(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("T2J_CACHE_LIMIT", "1")
    for number, project in enumerate(("a", "b", "a", "b")):
        folder = open_cache(tmp_path / project)
        assert folder is not None
        file = folder / f"{number}-cache"
        file.write_bytes(bytes(400_000))
        os.utime(file, (number, number))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_bytes(bytes(900_000))
    (folder / "link").symlink_to(outside)
    (folder / "made" / "by a program").mkdir(parents=True)
    assert trim() <= 1024**2
    left = sorted(one.name for one in (cache / "xla").glob("*/*-cache"))
    assert left == ["2-cache", "3-cache"]
    assert (outside / "mine").stat().st_size == 900_000
    assert not (folder / "made").exists()


def test_without_a_folder_that_can_be_made_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("T2J_CACHE", str(tmp_path / "file"))
    assert open_cache(tmp_path) is None


PROGRAM = (
    "import sys\n"
    "from t2j_lsp.check.process.scratch import Scratch\n"
    "scratch = Scratch('torch')\nprint(scratch.path, flush=True)\n"
    "sys.stdin.read()\n"
)


def test_scratch_folders_of_a_killed_process_go_at_the_next_start_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}

    def start() -> tuple[subprocess.Popen[str], Path]:
        command = [sys.executable, "-c", PROGRAM]
        process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    (living, kept), (killed, left) = start(), start()
    try:
        (left / "locked").mkdir()
        (left / "locked" / "model.pt").touch()
        (left / "locked").chmod(0)
        being_made = tmp_path / "t2j-check-new"
        being_made.mkdir()
        other = tmp_path / "t2j-checkpoints"
        other.mkdir()
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert left.is_dir()
        assert remove_abandoned() == [str(left.parent)]
        assert not left.parent.exists()
        assert kept.is_dir() and other.is_dir() and being_made.is_dir()
        mine = Scratch("jax")
        assert remove_abandoned() == [] and Path(mine.path).is_dir()
        mine.remove()
        assert not Path(mine.path).parent.exists()
    finally:
        living.communicate()
        killed.communicate()


def test_a_killed_check_leaves_no_folder_once_the_next_has_started(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    program = (
        "import sys\nfrom t2j_lsp.check.process.pool import Pool\npool = Pool(device='cpu')\npool.start()\n"
        "print('started', flush=True)\nsys.stdin.read()\npool.close()\n"
    )

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program]
        process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline() == "started\n"
        return process

    first = start()
    left = set(tmp_path.iterdir())
    first.kill()
    first.communicate()
    assert len(left) == 2
    second = start()
    # The folders of the killed one are gone as soon as its workers saw that, however they ended.
    assert not left & set(tmp_path.iterdir())
    second.communicate()
    deadline = time.monotonic() + 20
    while any(tmp_path.iterdir()) and time.monotonic() < deadline:
        os.sched_yield()
    assert not list(tmp_path.iterdir())


def test_a_language_server_removes_the_folders_of_a_killed_one_as_it_starts(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    killed = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert killed.stdout is not None
    left = Path(killed.stdout.readline().strip())
    killed.kill()
    killed.communicate()
    assert left.is_dir()
    with Client(env=environment) as client:
        client.initialize()
        deadline = time.monotonic() + 20
        while left.exists() and time.monotonic() < deadline:
            client.request("t2j/workspace")
        assert not left.exists()
