"""Exported dialogues: three forms, split by program, and a look for leaks that finds planted ones."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import PurePath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2j_lsp.assist.alike import holds, same_program
from t2j_lsp.assist.dialogue import Dialogue, Format, Turn, split
from t2j_lsp.assist.exporting import Leaks, exported, leaks
from t2j_lsp.assist.prompts import FIELDS, ChatMessage, as_json
from t2j_lsp.fixes.record import Example, Pair
from t2j_lsp.retrieval import dataset

EXAMPLES = dataset()
PROGRAMS = list({example.program: example for example in EXAMPLES}.values())
PAIRS = [pair for example in EXAMPLES for pair in example.pairs]
FORMS: tuple[Format, ...] = ("code pair", "dialogue", "qs pair")


def known(source: str) -> frozenset[str]:
    return same_program(PurePath(), source, EXAMPLES)


def talk(example: Example, shown: list[Pair], verified: bool = True, source: str | None = None) -> Dialogue:
    """A dialogue of two turns about a program, in whose prompts these fixed bugs stand."""
    asked: list[ChatMessage] = [
        {"role": "system", "content": "role"},
        {"role": "user", "content": f"{FIELDS}\n\n{as_json(shown)}"},
        {"role": "user", "content": f"The PyTorch program:\n\n{source or example.input_code}"},
    ]
    message = f"SPAN 1 failed\n\nMistakes like this that were fixed:\n\n{as_json(shown)}\n\nAnswer again."
    again: list[ChatMessage] = [*asked, {"role": "assistant", "content": "wrong"}, {"role": "user", "content": message}]
    given = ("m", "augmented-1")
    turns = [
        Turn(1, "translate", *given, asked, "wrong", [], example.weak_output, "different", False, True, 1, 1, 0.1),
        Turn(2, "repair", *given, again, "right", [], example.fix_output, "equivalent", verified, True, 1, 1, 0.1),
    ]
    return Dialogue(source or example.input_code, turns, verified, example.fix_output)


def talks(seed: int) -> list[Dialogue]:
    """Dialogues about all programs; about some twice, with other names, comments and layout."""
    rng = random.Random(seed)
    texts = []
    for example in PROGRAMS:
        texts.append(talk(example, rng.sample(PAIRS, 6), rng.random() < 0.8))
        if rng.random() < 0.4:
            again = re.sub(r"\bx\b", "inputs", "# another copy\n" + example.input_code.replace("    ", "  "))
            texts.append(talk(example, rng.sample(PAIRS, 6), True, again))
    rng.shuffle(texts)
    return texts


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 0.6), st.sampled_from(FORMS))
def test_nothing_of_the_test_side_is_on_the_training_side(seed: int, share: float, form: Format) -> None:
    given = talks(seed)
    rows = exported(given, form, share, known)
    assert rows.leaks == Leaks() and sum(rows.dialogues) == len(given)
    train, test = split(given, share)
    assert not {d.source_id for d in train} & {d.source_id for d in test}
    assert not any(holds(one.source, other.source) for one in train for other in test)
    names = {name for dialogue in test for name in known(dialogue.source)}
    text = "\n".join(message["content"] for example in rows.train for message in example["messages"])
    assert not names & {name for name, _ in re.findall(r'"Example_id": "([^"]+)/([^"/]+)"', text)}
    if form != "code pair" and rows.train:
        assert FIELDS in text, "fixed bugs of training programs stay"


def test_a_copy_with_other_names_is_on_the_same_side() -> None:
    (example,) = [e for e in PROGRAMS if e.program.replace("-", "_") == "small_cnn"]
    renamed = re.sub(r"\bx\b", "inputs", example.input_code.replace("class ", "class My"))
    for number in range(20):
        other = replace(PROGRAMS[number], input_code=f"# {number}\nvalue = {number}\n")
        train, test = split(
            [talk(example, []), talk(other, []), talk(example, [], True, f"# v{number}\n{renamed}")], 0.5
        )
        sides = [[d.source for d in side if "value" not in d.source] for side in (train, test)]
        assert sorted(map(len, sides)) == [0, 2]


@pytest.mark.parametrize("leak", ["dialogues", "sources", "answers", "fixed_bugs"])
def test_a_planted_leak_is_found(leak: str) -> None:
    one, other = talk(PROGRAMS[0], []), talk(PROGRAMS[1], [])
    train, texts = [other], [{"messages": [{"role": "user", "content": "nothing"}]}]
    if leak == "dialogues":
        train.append(one)
    elif leak == "sources":
        train.append(replace(other, source=f"# as before\n{one.source}"))
    elif leak == "answers":
        texts.append({"messages": [{"role": "assistant", "content": f"```python\n{one.code}```"}]})
    else:
        texts.append({"messages": talk(PROGRAMS[1], [next(iter(PROGRAMS[0].pairs))]).turns[0].question})  # type: ignore[dict-item]
    result = leaks(train, [one], texts, frozenset({PROGRAMS[0].program}))
    assert getattr(result, leak) == 1 and result.total == (2 if leak == "dialogues" else 1)


def test_examples_are_what_fine_tuning_takes() -> None:
    given = [talk(PROGRAMS[0], PAIRS[:2]), talk(PROGRAMS[5], [], verified=False)]
    for form in FORMS:
        rows = exported(given, form, 0.0)
        assert len(rows.train) == 1 and not rows.test
        for line in map(json.dumps, rows.train):
            messages = json.loads(line)["messages"]
            assert messages[-1]["role"] == "assistant" and {"role", "content"} == set(messages[0])
