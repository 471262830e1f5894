"""The judge model's part of an evaluation: scores of drafts, and drafts of two arms head to head, in both orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

from t2j_lsp.assist.model import Endpoint

from .cases import EvaluatedProgram, ProgramResult
from .fix_cost import fix_cost
from .rating import RUBRICS, Preference, ask_judge, comparison_prompt, rating_prompt, read_preference, read_score
from .recording import Placed

_WORTH: dict[Preference, float] = {"A": 1.0, "tie": 0.5, "B": 0.0}


@dataclass
class ArmComparison:
    """How the drafts of one arm did against those of another: 1 is always better, 0 never, a tie is a half.

    A program whose two answers are not both in the form asked for is in ``malformed`` and in nothing else. Drafts that
    are the same are a tie, and one that is not there loses: about these nobody is asked.
    """

    first: str
    second: str
    scores: dict[str, float] = field(default_factory=dict)
    """Of ``first``, by program."""
    ties: int = 0
    """Programs that end in a half."""
    malformed: int = 0
    unasked: int = 0
    orders_agree: int = 0
    asked: int = 0
    """Programs for which both orders were answered, and for how many of them the same arm came out."""
    shown_first: int = 0
    decided: int = 0
    """Answers that preferred one, and how many of them the one that was shown first: half, without a bias."""

    @property
    def score(self) -> float | None:
        return sum(self.scores.values()) / len(self.scores) if self.scores else None

    def to_json(self) -> dict[str, Any]:
        return {"n": len(self.scores), "score": self.score, **asdict(self)}


async def rate(
    cases: Sequence[ProgramResult],
    programs: dict[str, EvaluatedProgram],
    judge: Endpoint,
    client: Placed,
    on_progress: Callable[[str], None],
) -> None:
    """Has each draft scored: both aspects, without the reference and, where there is one, with it."""
    for case in cases:
        if not case.draft:
            continue
        program = programs[case.program]
        client.at(case.program, case.arm)
        on_progress(f"{case.program}, {case.arm}: asking {judge.model} for scores")
        for kind, reference in (("with", program.usable_reference), ("without", None)):
            if kind == "with" and reference is None:
                continue
            for aspect in RUBRICS:
                asked = rating_prompt(aspect, program.translation.source, case.draft, reference)
                reply = await ask_judge(client, judge, asked)
                score = read_score(reply.text) if reply is not None and reply.finish == "stop" else None
                case.scores[f"{aspect}, {kind} reference"] = score


async def compare(
    cases: Sequence[ProgramResult],
    programs: dict[str, EvaluatedProgram],
    judge: Endpoint,
    client: Placed,
    on_progress: Callable[[str], None],
) -> list[ArmComparison]:
    """Has the drafts of each two arms compared, and gives each case its mean over the other arms."""
    arms = list(dict.fromkeys(case.arm for case in cases))
    by_place = {(case.arm, case.program): case for case in cases}
    comparisons = []
    for first, second in combinations(arms, 2):
        result = ArmComparison(first, second)
        for name, program in programs.items():
            pair = by_place.get((first, name)), by_place.get((second, name))
            if pair[0] is None or pair[1] is None:
                continue
            client.at(name, f"{first} against {second}")
            on_progress(f"{name}: asking {judge.model} which is better, {first} or {second}")
            await _compare(result, program, pair[0], pair[1], judge, client)
        comparisons.append(result)
    for case in cases:
        given = [c.scores[case.program] for c in comparisons if c.first == case.arm and case.program in c.scores]
        given += [1 - c.scores[case.program] for c in comparisons if c.second == case.arm and case.program in c.scores]
        case.comparison = sum(given) / len(given) if given else None
    return comparisons


async def _compare(
    result: ArmComparison,
    program: EvaluatedProgram,
    first: ProgramResult,
    second: ProgramResult,
    judge: Endpoint,
    client: Placed,
) -> None:
    """One program, in both orders."""
    if not (first.draft and second.draft) or not fix_cost(first.draft, second.draft).steps:
        result.unasked += 1
        score = 0.5 if bool(first.draft) == bool(second.draft) else float(bool(first.draft))
        result.scores[program.name] = score
        result.ties += score == 0.5
        return
    said: list[Preference | None] = []
    for one, other in ((first, second), (second, first)):
        asked = comparison_prompt(program.translation.source, one.draft, other.draft)
        reply = await ask_judge(client, judge, asked)
        said.append(read_preference(reply.text) if reply is not None and reply.finish == "stop" else None)
    forth, back = said
    if forth is None or back is None:
        result.malformed += 1
        return
    worths = _WORTH[forth], 1 - _WORTH[back]
    score = sum(worths) / 2
    result.scores[program.name] = score
    result.ties += score == 0.5
    result.asked += 1
    result.orders_agree += worths[0] == worths[1]
    result.shown_first += (forth == "A") + (back == "A")
    result.decided += (forth != "tie") + (back != "tie")
