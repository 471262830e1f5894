"""One program under one kind of prompt: the loop's run of it, each answer with what it came to, first draft to last."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from t2j_lsp.assist.dialogue import Dialogue, Turn
from t2j_lsp.assist.drafts import Budget, Repair
from t2j_lsp.assist.judging import Judge, failure_of
from t2j_lsp.assist.model import Endpoint, ModelClient
from t2j_lsp.assist.repair import repair_async
from t2j_lsp.contract import STAGES, ObjectVerdict, Result, Translation, VerdictKind

from .arms import Arm, Shown
from .code_bleu import CodeBleu
from .fix_cost import FixCost, fix_cost

OUTCOMES = (
    "no answer", "lint", "duplicate", "does not load", "raises", "spec", "numeric", "behavioral", "unchecked",
    "equivalent",
)  # fmt: skip
"""How far an answer came: not usable; not run, for what it names or because the same failed before; an error; the stage
of the check in which it differs; run, but without a verdict; verified."""


@dataclass(frozen=True)
class EvaluatedProgram:
    """A file of the folder, what the rules made of it, and maybe a reference conversion."""

    name: str
    path: Path
    translation: Translation
    same: frozenset[str] = frozenset()
    """The data set's programs that it is: their fixed bugs are never shown for it."""
    reference: str | None = None
    reference_verdict: str | None = None
    """What the check says of the reference. One that is ``different`` is used for nothing."""

    @property
    def usable_reference(self) -> str | None:
        return self.reference if self.reference_verdict != VerdictKind.DIFFERENT else None


@dataclass(frozen=True)
class Answered:
    """One answer of a model. ``claim`` is what the model said of it, ``verified`` what the check found."""

    model: str
    outcome: str
    claim: bool | None
    verified: bool
    tokens_in: int
    tokens_out: int
    seconds: float

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


@dataclass
class ProgramResult:
    """What came of one program under one arm."""

    program: str
    arm: str
    spans: int
    verified: bool
    """Whether every refused span has an answer with which the check found the program equivalent."""
    ended: str
    objects: list[str]
    """The classes and functions that were judged."""
    answers: list[Answered]
    solved: dict[str, int]
    """Spans verified, by the model that solved them."""
    fixes: list[str]
    """The fixed bugs in the first prompt."""
    draft: str
    """The first program with answers in it; empty where no answer held code."""
    code: str
    cost: float
    lines: int
    """Lines of the program as it came out, and how many of them the rules did not write."""
    model_lines: int
    fix_cost: FixCost | None = None
    """From the draft to the code; None where that was never verified."""
    bleu_draft: CodeBleu | None = None
    bleu_code: CodeBleu | None = None
    scores: dict[str, int | None] = field(default_factory=dict)
    """A judge model's scores of the draft, by aspect; None for an answer that was no score."""
    comparison: float | None = None
    """How often a judge model preferred its draft to those of other arms, from 0 to 1."""
    run_time: dict[str, float] | None = None

    @property
    def tokens(self) -> int:
        return sum(answer.tokens for answer in self.answers)

    @property
    def claimed(self) -> bool:
        """Whether the model's last word was that it is right."""
        return bool(self.answers) and bool(self.answers[-1].claim)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Watched:
    """A judge that remembers what it said. Nothing else of it is changed."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.verdicts: dict[str, dict[str, ObjectVerdict]] = {}
        """By candidate, then by object."""

    def __call__(self, source: str, candidate: str, name: str) -> ObjectVerdict:
        verdict = self.judge(source, candidate, name)
        self.verdicts.setdefault(candidate, {})[name] = verdict
        return verdict

    @property
    def objects(self) -> list[str]:
        """The objects that were judged."""
        return sorted({name for said in self.verdicts.values() for name in said})

    def holds(self, source: str, code: str) -> bool:
        """Whether a whole program was found equivalent in every object that was judged on the way to it."""
        names = self.objects
        known = next((said for candidate, said in self.verdicts.items() if _same_code(candidate, code)), {})
        return bool(names) and all(
            (known.get(name) or self(source, code, name)).verdict is VerdictKind.EQUIVALENT for name in names
        )


async def run_case(
    program: EvaluatedProgram,
    arm: Arm,
    shown: Shown,
    models: Sequence[Endpoint],
    judge: Judge,
    *,
    budget: Budget,
    client: ModelClient,
    python: str | None = None,
    on_progress: Callable[[str], None] = lambda line: None,
) -> tuple[ProgramResult, Dialogue]:
    """The loop on one program with one kind of prompt."""
    watched = Watched(judge)
    repair = await repair_async(
        program.translation, models, watched, shown.index, style=arm.style, pairs=shown.pairs, budget=budget,
        client=client, python=python, on_progress=on_progress,
    )  # fmt: skip
    verified = not repair.left and watched.holds(program.translation.source, repair.code)
    turns = repair.dialogue.turns
    draft = next((turn.code for turn in turns if turn.code), "")
    case = ProgramResult(
        program=program.name,
        arm=arm.name,
        spans=len(repair.left) + sum(draft.verified for draft in repair.drafts.values()),
        verified=verified,
        ended=repair.ended,
        objects=watched.objects,
        answers=[_answered(turn, watched) for turn in turns],
        solved=_solved(repair),
        fixes=[pair.id for pair in repair.pairs],
        draft=draft,
        code=repair.code,
        cost=repair.cost,
        lines=len(repair.code.splitlines()),
        model_lines=fix_cost(program.translation.code, repair.code).lines if repair.drafts else 0,
        fix_cost=fix_cost(draft, repair.code) if verified else None,
    )
    return case, repair.dialogue


def outcome_of(verdicts: Sequence[ObjectVerdict]) -> str:
    """The worst of what a check said of a program's objects, in the words of `OUTCOMES`."""
    return min(map(_outcome, verdicts), key=OUTCOMES.index, default="unchecked")


def _outcome(verdict: ObjectVerdict) -> str:
    if verdict.verdict is VerdictKind.EQUIVALENT:
        return "equivalent"
    failure = failure_of(verdict)
    if failure is None:
        return "unchecked"
    if failure.outcome != "differs":
        return failure.outcome
    stages = verdict.stages
    return next((name for name in STAGES if name in stages and stages[name].result is Result.FAIL), "numeric")


def _answered(turn: Turn, watched: Watched) -> Answered:
    tag = next((tag for tag in turn.tags if tag in ("no answer", "lint")), None)
    if tag is None and "duplicate" in turn.tags and turn.code not in watched.verdicts:
        tag = "duplicate"
    outcome = tag or outcome_of([*watched.verdicts.get(turn.code, {}).values()])
    return Answered(turn.model, outcome, turn.claim, turn.verified, turn.tokens_in, turn.tokens_out, turn.seconds)


def _solved(repair: Repair) -> dict[str, int]:
    solved: dict[str, int] = {}
    for draft in repair.drafts.values():
        if draft.verified:
            solved[draft.model] = solved.get(draft.model, 0) + 1
    return solved


def _same_code(left: str, right: str) -> bool:
    """Whether two programs are the same but for layout and comments."""
    try:
        return left == right or ast.dump(ast.parse(left)) == ast.dump(ast.parse(right))
    except SyntaxError:
        return False
