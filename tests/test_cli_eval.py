"""``t2j eval`` as a process: recorded, replayed without a network, and its errors in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scripted_endpoint import serve

from .assist.test_evaluation import REFERENCE, ROWS, model
from .assist.test_repair import KEY, SOURCE
from .test_cli_llm import t2j

NOBODY = "http://127.0.0.1:9/v1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "programs"
    (home / "deep").mkdir(parents=True)
    (home / "slope.py").write_text(SOURCE)
    (home / "deep" / "rows.py").write_text(ROWS)
    (home / "deep" / "rows_jax.py").write_text(REFERENCE)
    (home / "plain.py").write_text("import torch\n\n\ndef f(a):\n    return torch.cat([a, a])\n")
    return home


def test_an_evaluation_is_printed_recorded_and_replayed(folder: Path, tmp_path: Path) -> None:
    kept, first, again = tmp_path / "kept", tmp_path / "first.json", tmp_path / "again.json"
    with serve(model) as script:
        done = t2j(
            "eval", folder, "--model", "small", "--judge", "judge", "--base-url", script.url, "--rounds", "2",
            "--price", "small=1:2", "--record", kept, "--json", first, "--markdown", tmp_path / "page.md",
            "--dialogues", tmp_path / "talks.jsonl", env={"T2J_LLM_KEY": KEY},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"sending 2 files to small at {script.url.split('/')[2]}" in done.stderr
    assert "3 programs of" in done.stdout and "the rules convert 1 without a gap" in done.stdout
    assert "Reference conversions, as the check finds them: 1 equivalent" in done.stdout
    report = json.loads(first.read_text())
    assert report["settings"]["arms"] == ["standard", "retrieved"]
    assert all(figures["verified"] == figures["n"] == 2 for figures in report["arms"].values())
    times = report["arms"]["standard"]["run_time"]
    assert times["n"] == 2 and times["compile_sum"] > times["jax_sum"] > 0 and times["speedup_geometric_mean"] > 0
    assert report["arms"]["standard"]["tokens"]["cost"] > 0 and report["versions"]["codebleu"]
    assert "| standard | 2 | 2 |" in (tmp_path / "page.md").read_text()
    assert len((tmp_path / "talks.jsonl").read_text().splitlines()) == 4
    everything = done.stdout + done.stderr + "".join(f.read_text() for f in tmp_path.rglob("*") if f.is_file())
    assert KEY not in everything

    replayed = t2j("eval", folder, "--replay", kept, "--base-url", NOBODY, "--json", again, env={"T2J_LLM_MODELS": ""})
    assert replayed.returncode == 0, replayed.stderr
    assert "nothing is sent" in replayed.stderr
    assert _timeless(json.loads(again.read_text())) == _timeless(report)


def _timeless(value: Any) -> Any:
    """A report without what differs from run to run: seconds, prices."""
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if k not in ("seconds", "cost", "run_time")}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere", "--model", "m"], "nowhere does not exist"),
        (["."], "no model is named"),
        ([".", "--model", "m", "--prompts", "best"], "there is no arm 'best'"),
        ([".", "--model", "m", "--price", "cheap"], "--price takes NAME=IN:OUT"),
        ([".", "--replay", "nothing"], "is no record of an evaluation"),
        ([".", "--model", "m", "--record", "."], "is not empty"),
    ],
)
def test_a_wrong_question_is_one_line(folder: Path, arguments: list[str], said: str) -> None:
    given = [str(folder) if argument == "." else argument for argument in arguments]
    done = t2j("eval", *given, env={"T2J_LLM_MODELS": ""})
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


def test_without_the_extra_the_command_says_how_to_install_it(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util\nfind = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, package=None: None if name == 'openai' else find(name, package)\n"
    )
    done = t2j("eval", folder, "--model", "m", env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 2 and "t2j eval needs openai: pip install 't2j-lsp[llm]'" in done.stderr


def test_a_replay_of_a_changed_program_names_the_answer_that_is_missing(folder: Path, tmp_path: Path) -> None:
    (folder / "slope.py").unlink()
    with serve(model) as script:
        recorded = t2j(
            "eval",
            folder,
            "--model",
            "m",
            "--prompts",
            "standard",
            "--base-url",
            script.url,
            "--record",
            tmp_path / "k",
        )
    assert recorded.returncode == 0, recorded.stderr
    (folder / "deep" / "rows.py").write_text(ROWS.replace("(d,)", "(slope,)").replace("return d", "return slope"))
    done = t2j("eval", folder, "--replay", tmp_path / "k", "--base-url", NOBODY)
    assert done.returncode == 2 and "lacks an answer of m for deep_rows.py/standard" in done.stderr
