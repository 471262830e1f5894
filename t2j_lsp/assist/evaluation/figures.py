"""The figures of an evaluation: for each arm, each model, each two arms, and how metrics go with FixCost.

Each stands beside the number of cases that it is of. What was never verified has no FixCost, and is counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from .cases import OUTCOMES, ProgramResult
from .rating import RUBRICS
from .statistics import Correlation, correlation, geometric_mean, share, summary

METRICS: dict[str, Callable[[ProgramResult], float | None]] = {
    "CodeBLEU": lambda case: case.bleu_draft.score if case.bleu_draft else None,
    **{
        f"{aspect}, {kind} reference": lambda case, name=f"{aspect}, {kind} reference": case.scores.get(name)  # type: ignore[misc]
        for aspect in RUBRICS
        for kind in ("with", "without")
    },
    "Comparison": lambda case: case.comparison,
    "rounds": lambda case: len(case.answers),
    "tokens": lambda case: case.tokens,
}
"""What may go with FixCost. Those of the program's text are of the first draft."""
COSTS = ("steps", "lines", "tokens")


def of_arm(cases: Sequence[ProgramResult]) -> dict[str, Any]:
    """Everything that is counted of one arm's cases."""
    verified = [case for case in cases if case.verified]
    failed = [case for case in cases if not case.verified]
    answers = [answer for case in cases for answer in case.answers]
    rounds = max((len(case.answers) for case in cases), default=0)
    return {
        "n": len(cases),
        "verified": len(verified),
        "spans": sum(case.spans for case in cases),
        "spans_verified": sum(sum(case.solved.values()) for case in cases),
        "first_answers": _outcomes([case.answers[0].outcome for case in cases if case.answers]),
        "last_answers": _outcomes([case.answers[-1].outcome for case in cases if case.answers]),
        "unanswered": sum(not case.answers for case in cases),
        "verified_by_round": [sum(len(case.answers) <= n for case in verified) for n in range(1, rounds + 1)],
        "fix_cost": {
            **{name: summary(getattr(c.fix_cost, name) for c in verified if c.fix_cost).to_json() for name in COSTS},
            "never_verified": len(failed),
        },
        "tokens": {
            "all": sum(case.tokens for case in cases),
            "verified_cases": summary(case.tokens for case in verified).to_json(),
            "failed_cases": summary(case.tokens for case in failed).to_json(),
            "per_verified_case": share(sum(case.tokens for case in cases), len(verified)),
            "cost": sum(case.cost for case in cases),
        },
        "claims": {
            "answers": len(answers),
            "answers_claimed": sum(bool(answer.claim) for answer in answers),
            "answers_verified": sum(answer.verified for answer in answers),
            "claimed_not_verified": sum(bool(answer.claim) and not answer.verified for answer in answers),
            "cases_claimed": sum(case.claimed for case in cases),
            "overclaim_answers": _overclaim([(bool(a.claim), a.verified) for a in answers]),
            "overclaim_cases": _overclaim([(case.claimed, case.verified) for case in cases]),
        },
        "code_bleu": {
            "draft": summary(case.bleu_draft.score for case in cases if case.bleu_draft).to_json(),
            "result": summary(case.bleu_code.score for case in cases if case.bleu_code).to_json(),
        },
        "scores": _scores(cases),
        "model_lines": {
            "lines": sum(case.lines for case in cases),
            "of_models": sum(case.model_lines for case in cases),
        },
        "run_time": _run_time(cases),
    }


def of_models(cases: Sequence[ProgramResult], order: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What each model was asked, solved and took, in the order in which they are asked."""
    figures = {}
    for model in order:
        answers = [answer for case in cases for answer in case.answers if answer.model == model]
        figures[model] = {
            "cases": sum(any(answer.model == model for answer in case.answers) for case in cases),
            "answers": len(answers),
            "spans_verified": sum(case.solved.get(model, 0) for case in cases),
            "tokens_in": sum(answer.tokens_in for answer in answers),
            "tokens_out": sum(answer.tokens_out for answer in answers),
        }
    return figures


def correlations(cases: Sequence[ProgramResult]) -> list[Correlation]:
    """Each metric against each weight of FixCost, over all verified cases of all arms that have both."""
    computed = []
    for metric, read in METRICS.items():
        known = [(value, case.fix_cost) for case in cases if case.fix_cost and (value := read(case)) is not None]
        for cost in COSTS:
            points = [(float(value), float(getattr(steps, cost))) for value, steps in known]
            computed.append(correlation(metric, cost, points))
    return computed


def _outcomes(outcomes: Sequence[str]) -> dict[str, int]:
    counts = Counter(outcomes)
    return {name: counts[name] for name in OUTCOMES}


def _overclaim(said: Sequence[tuple[bool, bool]]) -> float | None:
    """Claimed minus verified, in points of a hundred."""
    gap = share(sum(claim for claim, _ in said) - sum(verified for _, verified in said), len(said))
    return None if gap is None else 100 * gap


def _scores(cases: Sequence[ProgramResult]) -> dict[str, Any]:
    """A judge model's scores, and how many of its answers were none."""
    names = dict.fromkeys(name for case in cases for name in case.scores)
    scores = {}
    for name in names:
        given = [case.scores[name] for case in cases if name in case.scores]
        scores[name] = {
            **summary(score for score in given if score is not None).to_json(),
            "malformed": sum(score is None for score in given),
        }
    return scores


def _run_time(cases: Sequence[ProgramResult]) -> dict[str, Any]:
    """Seconds of one call, summed, and the geometric mean of how many times as fast as PyTorch; compiling apart."""
    timed = [case.run_time for case in cases if case.run_time]
    return {
        "n": len(timed),
        **{f"{name}_sum": sum(t[name] for t in timed) for name in ("torch", "jax", "compile")},
        "speedup_geometric_mean": geometric_mean(t["torch"] / t["jax"] for t in timed),
    }
