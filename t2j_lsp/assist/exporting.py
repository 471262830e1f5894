"""Dialogues as training and test examples, and the proof that nothing of the test programs is in the training ones."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .alike import holds
from .dialogue import Dialogue, Format, export, split
from .prompts import FIELDS

_PAIRS = re.compile(r"^\[\n \{\n.*?^\]", re.MULTILINE | re.DOTALL)
"""Fixed bugs as they stand in a prompt."""

Known = Callable[[str], frozenset[str]]
"""The names of the fixed bugs' programs that a program is."""


@dataclass(frozen=True)
class Leaks:
    """What the training side has of the test side; all zero where nothing leaks."""

    dialogues: int = 0
    """The same dialogue on both sides."""
    sources: int = 0
    """Test programs that are, but for layout and names, a training program, or hold one, or stand in one."""
    answers: int = 0
    """Verified test programs that stand in a training example."""
    fixed_bugs: int = 0
    """Training examples that show a fixed bug of a test program."""

    @property
    def total(self) -> int:
        return sum(asdict(self).values())


@dataclass(frozen=True)
class Exported:
    """Examples in chat format, the dialogues behind them, and what leaks from test to training."""

    train: list[dict[str, Any]] = field(default_factory=list)
    test: list[dict[str, Any]] = field(default_factory=list)
    dialogues: tuple[int, int] = (0, 0)
    leaks: Leaks = Leaks()


def exported(
    dialogues: Iterable[Dialogue], form: Format, test_share: float, known: Known = lambda source: frozenset()
) -> Exported:
    """Verified answers of dialogues as examples, split by program.

    Fixed bugs of test programs are taken out of what training examples show: they are those programs' solutions.
    """
    train, test = split(dialogues, test_share)
    names = frozenset[str]().union(*(known(dialogue.source) for dialogue in test))
    examples = [_without(example, names) for example in export(train, form)]
    leaked = leaks(train, test, examples, names)
    return Exported(examples, list(export(test, form)), (len(train), len(test)), leaked)


def leaks(
    train: Sequence[Dialogue], test: Sequence[Dialogue], examples: Sequence[dict[str, Any]], names: frozenset[str]
) -> Leaks:
    """Looks for the test side in the training side; ``names`` are the fixed bugs' programs on the test side."""
    said = [json.dumps(dialogue.to_json(), sort_keys=True) for dialogue in train]
    texts = ["\n".join(message["content"] for message in example["messages"]) for example in examples]
    shown = re.compile('"Example_id": "(?:' + "|".join(map(re.escape, sorted(names))) + ")/") if names else None
    return Leaks(
        sum(json.dumps(dialogue.to_json(), sort_keys=True) in said for dialogue in test),
        sum(any(holds(d.source, o.source) or holds(o.source, d.source) for o in train) for d in test),
        sum(d.verified and any(d.code.strip() in text for text in texts) for d in test),
        sum(bool(shown and shown.search(text)) for text in texts),
    )


def _without(example: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """An example that shows no fixed bug of these programs. The message that showed these alone goes."""

    def kept(match: re.Match[str]) -> str:
        pairs = json.loads(match[0])
        left = [pair for pair in pairs if pair["Example_id"].rpartition("/")[0] not in names]
        return match[0] if len(left) == len(pairs) else json.dumps(left, indent=1, ensure_ascii=False)

    messages = [{**m, "content": _PAIRS.sub(kept, m["content"])} for m in example["messages"]]
    return {**example, "messages": [m for m in messages if m["content"] != f"{FIELDS}\n\n[]"]}
