"""Dialogues: kept alike whether they end well or not, exported in three forms, and never in two splits."""

from __future__ import annotations

from pathlib import Path

from t2j_lsp.assist.dialogue import Dialogue, Turn, append, export, read, split


def turn(number: int, verified: bool) -> Turn:
    question = [{"role": "system", "content": "role"}, {"role": "user", "content": f"question {number}"}]
    return Turn(
        number, "repair", "m", "augmented-1", question, f"answer {number}", [], "code", "", verified, True, 1, 2, 0.1
    )  # type: ignore[arg-type]


def talk(source: str, *ends: bool) -> Dialogue:
    turns = [turn(number, end) for number, end in enumerate(ends, 1)]
    return Dialogue(source, turns, ends[-1], "import jax\n")


def test_they_survive_a_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "talks.jsonl"
    talks = [talk("a", False, True), talk("b", False)]
    for one in talks:
        append(path, one)
    assert read(path) == talks


def test_failed_ones_are_no_training_data_for_answers() -> None:
    failed = talk("a", False, False)
    assert [list(export([failed], form)) for form in ("code pair", "dialogue", "qs pair")] == [[], [], []]


def test_a_verified_one_in_three_forms() -> None:
    good = talk("import torch\n", False, True)
    (pair,) = export([good], "code pair")
    assert "import torch" in pair["messages"][0]["content"] and "import jax" in pair["messages"][1]["content"]
    (whole,) = export([good], "dialogue")
    roles = [message["role"] for message in whole["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant"]
    (question,) = export([good], "qs pair")
    assert [m["content"] for m in question["messages"]] == ["role", "question 2", "answer 2"]


def test_all_dialogues_about_a_program_are_in_one_split() -> None:
    talks = [talk(f"program {number % 50}", True) for number in range(500)]
    train, test = split(talks)
    assert len(train) + len(test) == 500 and test and train
    assert not {t.source_id for t in train} & {t.source_id for t in test}
