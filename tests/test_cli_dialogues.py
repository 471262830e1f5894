"""``t2j dialogues`` as a process: counts, the three exports, and its errors in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from t2j_lsp.assist.dialogue import append

from .assist.test_exporting import talks
from .test_cli_llm import t2j


@pytest.fixture
def said(tmp_path: Path) -> Path:
    for dialogue in talks(3):
        append(tmp_path / "talks.jsonl", dialogue)
    return tmp_path / "talks.jsonl"


def test_dialogues_are_counted(said: Path) -> None:
    done = t2j("dialogues", said)
    assert done.returncode == 0
    counts = dict(line.rsplit(None, 1) for line in done.stdout.splitlines()[1:3])
    assert int(counts["dialogues"]) == len(said.read_text().splitlines())


@pytest.mark.parametrize("form", ["code-pair", "dialogue", "qs-pair"])
def test_an_export_has_two_sides_and_no_leaks(said: Path, tmp_path: Path, form: str) -> None:
    done = t2j("dialogues", said, "-o", tmp_path / "out", "--format", form)
    assert done.returncode == 0, done.stderr
    assert "of the test side: 0 dialogues, 0 programs, 0 answers, 0 of its fixed bugs" in done.stdout
    train, test = (
        [json.loads(line) for line in (tmp_path / "out" / f"{side}.jsonl").read_text().splitlines()]
        for side in ("train", "test")
    )
    assert train and test and not {e["source_id"] for e in train} & {e["source_id"] for e in test}
    again = t2j("dialogues", said, "-o", tmp_path / "out")
    assert again.returncode == 2 and "train.jsonl exists" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.jsonl"], "nowhere.jsonl can't be read"),
        (["{said}", "--test", "2"], "--test takes a share"),
        (["{other}"], "holds no dialogues"),
    ],
)
def test_a_wrong_question_is_one_line(said: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    given = [argument.format(said=said, other=tmp_path / "other.jsonl") for argument in arguments]
    done = t2j("dialogues", *given)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1
