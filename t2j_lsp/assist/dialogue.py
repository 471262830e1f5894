"""Records a repair as a dialogue of a questioner and a solver, and exports dialogues as training data.

The questioner is built from what the rules, the lint and the check said; the solver is the model. Verified and failed
dialogues are kept alike, one JSON object a line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from .alike import holds
from .prompts import ChatMessage

State = Literal["translate", "repair"]
Format = Literal["code pair", "dialogue", "qs pair"]


@dataclass
class Turn:
    """A question and what came of its answer. ``result`` is the verdict's reason, or what else was wrong."""

    round: int
    state: State
    model: str
    prompt: str
    question: list[ChatMessage]
    answer: str
    tags: list[str]
    code: str
    result: str
    verified: bool
    claim: bool | None
    tokens_in: int
    tokens_out: int
    seconds: float
    tests: dict[str, str] = field(default_factory=dict)
    """Unit tests of the PyTorch program, and how each ended on the answer: ``passed``, or what was wrong."""


@dataclass
class Dialogue:
    """One repair from first to last turn."""

    source: str
    turns: list[Turn] = field(default_factory=list)
    verified: bool = False
    code: str = ""
    tests: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each class or function that was asked about, the test file: ``torch``, and translated ``jax``."""

    @property
    def source_id(self) -> str:
        """The same for dialogues about the same program: none of them may be in two splits."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        return {"source_id": self.source_id, **asdict(self)}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Dialogue:
        """Raises KeyError or TypeError where it is no dialogue."""
        return Dialogue(
            data["source"],
            [Turn(**turn) for turn in data["turns"]],
            data["verified"],
            data["code"],
            data.get("tests", {}),
        )


def append(path: Path, dialogue: Dialogue) -> None:
    """Adds a dialogue to a file, which is made where it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(dialogue.to_json(), ensure_ascii=False) + "\n")


def read(path: Path) -> list[Dialogue]:
    return [Dialogue.from_json(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines() if line]


def export(dialogues: Iterable[Dialogue], form: Format) -> Iterator[dict[str, Any]]:
    """Chat-format examples: of verified dialogues the pair of programs, all turns, or each question with its answer."""
    for dialogue in dialogues:
        about = {"source_id": dialogue.source_id}
        if form == "code pair" and dialogue.verified:
            ask = f"Translate this PyTorch program to JAX with Flax NNX.\n\n```python\n{dialogue.source}```"
            yield {**about, "messages": [_said("user", ask), _said("assistant", f"```python\n{dialogue.code}```")]}
        elif form == "dialogue" and dialogue.verified:
            messages: list[ChatMessage] = []
            for turn in dialogue.turns:
                messages += turn.question if not messages else turn.question[-1:]
                messages.append(_said("assistant", turn.answer))
            yield {**about, "messages": messages}
        elif form == "qs pair":
            for turn in dialogue.turns:
                if turn.verified:
                    yield {**about, "messages": [*turn.question, _said("assistant", turn.answer)]}


def split(dialogues: Iterable[Dialogue], test_share: float = 0.2) -> tuple[list[Dialogue], list[Dialogue]]:
    """Training and test dialogues: all of one program, and of programs like it, are on the same side."""
    train: list[Dialogue] = []
    test: list[Dialogue] = []
    for group in _by_program(dialogues):
        place = int(min(dialogue.source_id for dialogue in group), 16) / 16**16
        (test if place < test_share else train).extend(group)
    return train, test


def _by_program(dialogues: Iterable[Dialogue]) -> list[list[Dialogue]]:
    """Dialogues in groups: of the same program, or of one that holds most of another's statements."""
    groups: list[list[Dialogue]] = []
    for dialogue in dialogues:
        joined = [g for g in groups if any(_alike(dialogue.source, other.source) for other in g)]
        groups = [g for g in groups if all(g is not other for other in joined)]
        groups.append([*(one for group in joined for one in group), dialogue])
    return groups


def _alike(one: str, other: str) -> bool:
    return holds(one, other) or holds(other, one)


def _said(role: Literal["user", "assistant"], content: str) -> ChatMessage:
    return {"role": role, "content": content}
