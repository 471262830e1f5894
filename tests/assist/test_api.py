"""The Python functions: a file in, a repair out; cancelled at any time; openai only when a model is asked."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.scripted_endpoint import Script, Silence, serve
from t2j_lsp import assist
from t2j_lsp.contract import SourceError, T2JError

from .test_repair import KEY, RIGHT, SOURCE


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "slope.py"
    path.write_text(SOURCE)
    return path


def test_a_file_is_repaired_with_the_key_of_the_environment(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T2J_LLM_KEY", KEY)
    said: list[str] = []
    talks = file.parent / "talks.jsonl"
    with serve([RIGHT]) as script:
        result = assist.repair(file, ["m"], base_url=script.url, on_text=said.append, dialogues=talks)
    assert result.ended == "all verified" and not result.left and "jnp.cumsum(y, axis=1)" in result.code
    assert "".join(said) == RIGHT and script.keys == [f"Bearer {KEY}"] and KEY not in talks.read_text()


def test_cancelling_ends_the_request_and_the_workers(file: Path) -> None:
    async def cancelled(script: Script) -> None:
        task = asyncio.create_task(assist.repair_async(file, [assist.Endpoint("m", script.url)]))
        await asyncio.to_thread(script.asked.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with serve([Silence()]) as script:
        asyncio.run(asyncio.wait_for(cancelled(script), 120))


def test_what_would_be_sent_is_told_without_sending_it(file: Path) -> None:
    message = assist.prompt(file)
    assert [span.names for span in message.spans] == [("torch.ops.aten.cumsum",)] and message.pairs
    assert assist.prompt(file, style="standard").pairs == ()


def test_wrong_uses_are_one_line_each(file: Path, tmp_path: Path) -> None:
    async def inside() -> None:
        assist.repair(file, ["m"])

    with pytest.raises(T2JError, match=r"await t2j_lsp\.assist\.repair_async"):
        asyncio.run(inside())
    with pytest.raises(T2JError, match="a list of names"):
        assist.repair(file, [])
    with pytest.raises(T2JError, match=r"no \.py file"):
        assist.repair(tmp_path / "a.ipynb", ["m"])
    with pytest.raises(SourceError):
        assist.prompt(tmp_path / "nowhere.py")


def test_importing_it_loads_neither_openai_nor_torch_nor_jax() -> None:
    code = "import sys, t2j_lsp.assist; print([m for m in ('openai', 'torch', 'jax', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
