"""What a repair makes: drafts of spans, one answer's round, and what came of it all within its budget."""

from __future__ import annotations

from dataclasses import dataclass, field

from t2j_lsp.contract import Translation
from t2j_lsp.fixes.record import Pair

from .answers import Answer
from .dialogue import Dialogue
from .judging import CandidateFailure
from .model import Reply
from .spans import RefusedSpan

ROUNDS = 7
"""Rounds with one model, at most. The published seven bounds another stage; as an upper bound it is ours."""
PATIENCE = 3
"""Rounds without gain."""


@dataclass(frozen=True)
class Budget:
    """When a repair ends without success: rounds with each model, rounds without gain, tokens, US dollars, seconds."""

    rounds: int = ROUNDS
    patience: int = PATIENCE
    tokens: int = 200_000
    cost: float = 5.0
    seconds: float = 1200.0


@dataclass(frozen=True)
class Draft:
    """The best that was made of a span: verified, or with the reason why not."""

    code: str
    model: str
    verified: bool
    reason: str = ""
    ran: bool = True
    """Whether it was run: what is no Python, or names what is not there, never gets so far."""


@dataclass
class Repair:
    """What came of it: the translation with every verified answer, and every draft marked as one.

    The gaps of verified answers are no longer among its findings.
    """

    translation: Translation
    drafts: dict[int, Draft] = field(default_factory=dict)
    left: tuple[RefusedSpan, ...] = ()
    """Spans without a verified answer."""
    pairs: tuple[Pair, ...] = ()
    """The fixed bugs in the first prompt."""
    dialogue: Dialogue = field(default_factory=lambda: Dialogue(""))
    tokens: int = 0
    cost: float = 0.0
    ended: str = ""
    """Why: ``all verified``, ``rounds``, ``no gain``, ``no answer``, ``tokens``, ``cost``, ``time``."""

    @property
    def code(self) -> str:
        return self.translation.code

    @property
    def claimed(self) -> int:
        """Answers that the model called equivalent."""
        return sum(bool(turn.claim) for turn in self.dialogue.turns)

    @property
    def rounds(self) -> int:
        return len(self.dialogue.turns)


@dataclass
class Round:
    """What one answer came to, before anything is decided."""

    reply: Reply
    answer: Answer | None = None
    code: str = ""
    verified: set[int] = field(default_factory=set)
    results: dict[int, str] = field(default_factory=dict)
    failure: CandidateFailure | None = None
    ran: bool = False
    tags: list[str] = field(default_factory=list)
    tests: dict[str, str] = field(default_factory=dict)

    @property
    def head(self) -> str:
        return self.answer.head if self.answer else ""
