"""An evaluation: every program under every arm, then the metrics of the drafts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from t2j_lsp.assist.dialogue import Dialogue
from t2j_lsp.assist.drafts import Budget
from t2j_lsp.assist.judging import Judge
from t2j_lsp.assist.model import Endpoint
from t2j_lsp.fixes.record import BugIndex, Pair

from .arms import Arm, shown
from .cases import EvaluatedProgram, ProgramResult, run_case
from .code_bleu import available, code_bleu
from .comparing import ArmComparison, compare, rate
from .recording import Placed


@dataclass(frozen=True)
class EvaluationSettings:
    """What is evaluated: models, cheap ones first; kinds of prompt; a model that scores drafts, or none."""

    models: tuple[Endpoint, ...]
    arms: tuple[Arm, ...]
    judge: Endpoint | None = None
    budget: Budget = field(default_factory=Budget)

    @property
    def judge_at_zero(self) -> Endpoint | None:
        """The judge model at temperature 0."""
        return replace(self.judge, temperature=0.0) if self.judge else None


@dataclass
class Evaluation:
    """What came of it."""

    cases: list[ProgramResult] = field(default_factory=list)
    comparisons: list[ArmComparison] = field(default_factory=list)
    dialogues: list[Dialogue] = field(default_factory=list)


class Timing(Protocol):
    """Measures how long objects of a program and of its conversion run; None where that can't be said."""

    def __call__(self, program: EvaluatedProgram, code: str, objects: Sequence[str]) -> dict[str, float] | None: ...


@dataclass(frozen=True)
class Bench:
    """What an evaluation works with: the check by program, fixed bugs, a client, the interpreter with jax."""

    judges: Callable[[EvaluatedProgram], Judge]
    index: BugIndex
    pairs: Sequence[Pair]
    client: Placed
    python: str | None = None
    timing: Timing | None = None
    on_progress: Callable[[str], None] = lambda line: None
    on_case: Callable[[ProgramResult, Dialogue], Any] = lambda case, dialogue: None


async def evaluate(programs: Sequence[EvaluatedProgram], settings: EvaluationSettings, bench: Bench) -> Evaluation:
    """Runs the loop on every program under every arm, and measures. Programs that the rules convert whole are not asked
    about. Raises T2JError where a library or a recorded answer is missing."""
    result = Evaluation()
    asked = [program for program in programs if program.translation.gaps]
    for program in asked:
        judge = bench.judges(program)
        for arm in settings.arms:
            bench.client.at(program.name, arm.name)
            bench.on_progress(f"{program.name}, {arm.name}")
            case, dialogue = await run_case(
                program, arm, shown(arm, bench.index, bench.pairs, program.same), settings.models, judge,
                budget=settings.budget, client=bench.client, python=bench.python, on_progress=bench.on_progress,
            )  # fmt: skip
            _measure(case, program, bench)
            result.cases.append(case)
            result.dialogues.append(dialogue)
            bench.on_case(case, dialogue)
    judge_model = settings.judge_at_zero
    if judge_model is not None:
        by_name: Mapping[str, EvaluatedProgram] = {program.name: program for program in asked}
        await rate(result.cases, dict(by_name), judge_model, bench.client, bench.on_progress)
        result.comparisons = await compare(
            result.cases, dict(by_name), judge_model, bench.client, bench.on_progress
        )  # fmt: skip
    return result


def _measure(case: ProgramResult, program: EvaluatedProgram, bench: Bench) -> None:
    """What needs no model: similarity to the reference, and run time of what was verified."""
    reference = program.usable_reference
    if reference is not None and available():
        case.bleu_draft = code_bleu(reference, case.draft) if case.draft else None
        case.bleu_code = code_bleu(reference, case.code)
    if case.verified and bench.timing is not None:
        case.run_time = bench.timing(program, case.code, case.objects)
