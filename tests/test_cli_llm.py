"""``t2j fixes``, ``t2j prompt`` and ``t2j convert --llm``, as processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.scripted_endpoint import serve

from .assist.test_repair import KEY, PLAIN, RIGHT, SOURCE, TANH, WRONG, answer

ENDLESS = 300


def t2j(*arguments: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "t2j_lsp", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=ENDLESS, env=os.environ | (env or {}))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "slope.py"
    path.write_text(SOURCE)
    return path


def test_fixes_are_found_by_words() -> None:
    done = t2j("fixes", "gelu", "approximation", "--limit", "1")
    assert done.returncode == 0 and done.stdout.startswith("gelu approximation")
    assert (
        re.search(r"^  (faulty |- )", done.stdout, re.MULTILINE)
        and "approximate=False" in done.stdout
        and "it said: " in done.stdout
    )


def test_fixes_are_found_by_code_and_message_and_written_as_json(tmp_path: Path) -> None:
    (tmp_path / "draft.py").write_text("import jax.numpy as jnp\n\n\ndef f(x):\n    return jnp.rsqrt(x)\n")
    report = tmp_path / "fixes.json"
    error = "AttributeError: module 'jax.numpy' has no attribute 'rsqrt'"
    done = t2j("fixes", error, "--code", tmp_path / "draft.py", "--json", report)
    assert done.returncode == 0
    first = json.loads(report.read_text())["fixes"][0]
    assert first["Root_cause"] == "jnp-rsqrt" and first["Verification"]["outcome"] == "raises"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["fixes"], "say what to look for"), (["fixes", "--code", "nowhere.py"], "nowhere.py can't be read")],
)
def test_a_wrong_question_is_one_line(arguments: list[str], said: str) -> None:
    done = t2j(*arguments)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


def test_prompt_prints_what_would_be_sent_and_sends_nothing(source: Path, tmp_path: Path) -> None:
    done = t2j("prompt", source)
    assert done.returncode == 0 and "nothing was sent" in done.stderr
    assert (
        "### SPAN 1" in done.stdout
        and "torch.ops.aten.cumsum(y, dim=1)" in done.stdout
        and '"Error_Code"' in done.stdout
    )
    plain = t2j("prompt", source, "--style", "standard", "--json", tmp_path / "prompt.json")
    assert plain.stdout == ""
    data = json.loads((tmp_path / "prompt.json").read_text())
    assert (
        data["prompt"] == "standard-1"
        and data["fixes"] == []
        and data["spans"][0]["names"] == ["torch.ops.aten.cumsum"]
    )


def test_prompt_of_a_file_without_gaps_is_empty(tmp_path: Path) -> None:
    (tmp_path / "cat.py").write_text("import torch\n\n\ndef f(a):\n    return torch.cat([a, a])\n")
    done = t2j("prompt", tmp_path / "cat.py")
    assert done.returncode == 0 and done.stdout == "" and "refuse nothing" in done.stderr


def test_without_llm_nothing_is_asked(source: Path) -> None:
    with serve([RIGHT]) as script:
        done = t2j(
            "convert", source, env={"T2J_LLM_BASE_URL": script.url, "T2J_LLM_MODELS": "m", "OPENAI_API_KEY": KEY}
        )
    assert done.returncode == 1 and script.requests == []


def test_a_model_is_asked_and_its_verified_answer_written(source: Path, tmp_path: Path) -> None:
    out, talk = tmp_path / "slope_jax.py", tmp_path / "talk.jsonl"
    with serve([WRONG, RIGHT]) as script:
        done = t2j(
            "convert", source, "-o", out, "--llm", "auto", "--model", "small", "--dialogues", talk,
            env={"T2J_LLM_BASE_URL": script.url, "T2J_LLM_KEY": KEY},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"sending this file to small at {script.url.split('/')[2]}" in done.stderr
    assert "1 span verified, 0 spans left (all verified; 2 rounds" in done.stderr
    assert "dy = jnp.cumsum(y, axis=1)" in out.read_text() and "import torch" not in out.read_text()
    (said,) = [json.loads(line) for line in talk.read_text().splitlines()]
    assert said["verified"] and [turn["verified"] for turn in said["turns"]] == [False, True]
    assert KEY not in done.stderr + done.stdout + talk.read_text() + out.read_text()
    # Unit tests of the source, which pass there, and what became of them on each answer.
    (tests,) = said["tests"].values()
    assert "import torch" in tests["torch"] and "import torch" not in tests["jax"].replace("import torch_state", "")
    wrong, right = (turn["tests"] for turn in said["turns"])
    assert wrong.keys() == right.keys() and set(right.values()) == {"passed"}
    assert any(end.startswith("AssertionError") for end in wrong.values())


def test_a_draft_that_is_not_verified_is_marked_and_the_exit_code_says_so(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "slope_jax.py"
    with serve([WRONG]) as script:
        done = t2j(
            "convert", source, "-o", out, "--llm", "auto", "--model", "small", "--base-url", script.url, "--rounds", "1"
        )
    assert done.returncode == 1 and "0 spans verified, 1 span left" in done.stderr
    assert "# TODO(t2j): unverified draft by small: different" in out.read_text()


def test_no_model_is_named(source: Path) -> None:
    done = t2j("convert", source, "--llm", "auto", env={"T2J_LLM_MODELS": ""})
    assert done.returncode == 2 and "no model is named" in done.stderr


def test_llm_always_asks_although_the_rules_convert_all_and_keeps_their_code(tmp_path: Path) -> None:
    plain = tmp_path / "plain.py"
    plain.write_text(PLAIN)
    rules = t2j("convert", plain)
    with serve([answer(TANH)]) as script:
        env = {"T2J_LLM_BASE_URL": script.url, "T2J_LLM_MODELS": "m", "OPENAI_API_KEY": KEY}
        done = t2j("convert", plain, "--llm", "always", "--rounds", "1", env=env)
        assert t2j("convert", plain, "--llm", "auto", env=env).stdout == rules.stdout
    assert done.returncode == 0 and done.stdout == rules.stdout and len(script.requests) == 1
    assert "0 spans verified, 0 spans left, 2 spans as the rules convert it" in done.stderr
    message = t2j("prompt", plain, "--llm", "always")
    assert "### SPAN 2" in message.stdout and "the rules convert it" in message.stdout
