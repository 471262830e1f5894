"""The verdict on one object, from what the two workers observed: questions, of which the first to decide does."""

from __future__ import annotations

from collections.abc import Callable

from t2j_lsp.check.messages import Failure
from t2j_lsp.contract import Result, StageResult, VerdictKind

from .compared import ComparedEvidence
from .evidence import Evidence, Judgement
from .generation import generated
from .stages import NOTHING, describe, stage_result, together

ON_HOST = "compared without jit: it returns Python numbers or NumPy arrays, as in PyTorch, which jit has no values for"
INITIAL_VALUES = "initial values were not compared: they are left to Flax, and not PyTorch's"
_FORM_OBSERVED = ("construction", "parameter and buffer names and shapes", "output structure, shapes and dtypes")


def judge(name: str, last: str, evidence: Evidence) -> Judgement:
    """The judgement on one object, with ``last`` the last stage that was asked for."""
    failed = evidence.jax[64].errors.get("construct")
    if failed is not None:
        return Judgement.equivalent(name).raised("spec", "it can't be built with torch's state", failed)
    compared = ComparedEvidence(name, last, evidence)
    return next(filter(None, (question(compared) for question in QUESTIONS)), compared.judgement)


# --- what is asked, one after the other: each answers with a judgement that is the last word, or None ---------------


def form_agrees(compared: ComparedEvidence) -> Judgement | None:
    """Structure, shapes and dtypes."""
    form, initial = compared.form, compared.evidence.initial
    failed = [*form, *(initial or ())]
    wanted = compared.evidence.compares_initial or not compared.trainable
    reason = describe(failed) if failed else None if wanted else INITIAL_VALUES
    observed = [*_FORM_OBSERVED, *([] if initial is None else ["distributions of initial values"])]
    result = Result.FAIL if failed else Result.PASS
    compared.judgement.verdict.stages["spec"] = StageResult(result, reason, observed=observed)
    return compared.judgement.differs(form) if form else None


def values_agree(compared: ComparedEvidence) -> Judgement | None:
    """Values and gradients, in float64 and in the user's precision, if these are asked for."""
    if compared.narrow is not None and not compared.numeric.differences and not compared.unpaired:
        compared.compare_narrow(compared.narrow)
    if compared.last == "spec":
        compared.judgement.verdict.stages["numeric"] = StageResult(reason="not asked for")
        return compared.judgement
    compared.judgement.verdict.stages["numeric"] = stage = stage_result(compared.numeric)
    if compared.numeric.differences:
        texts = [d.text for problems in compared.jax.draws.values() for d in problems if d.kind != "kind"]
        return compared.judgement.differs(compared.numeric.differences, texts)
    if len(compared.errors(compared.jax)) < len(compared.jax.errors):
        stage.reason = ON_HOST
    return None


def nothing_is_raised(compared: ComparedEvidence) -> Judgement | None:
    """Errors of the JAX side in any phase."""
    errors = compared.errors(compared.jax)
    if not errors and compared.narrow is not None:
        errors = [(f"{phase} in float32", error) for phase, error in compared.errors(compared.narrow)]
    for phase, error in errors:
        eager = phase.endswith("under jit") and phase.removesuffix(" under jit") in compared.observed
        what = "it runs, but not under jit" if eager else f"it fails in {phase}"
        return compared.judgement.raised("numeric", what, error)
    return None


def precision_is_kept(compared: ComparedEvidence) -> Judgement | None:
    """Half precision, where torch computes in none."""
    if compared.narrow is None or not compared.narrow.halves or compared.torch.halves:
        return None
    half = compared.narrow.halves[0]
    return compared.judgement.fails("numeric", f"in float32, it computes in {half.dtype}, which torch does not", half)


def draws_are_independent(compared: ComparedEvidence) -> Judgement | None:
    """One key for two draws."""
    reused = compared.draws("reuse")
    if reused and any(len(tape) > 1 for tape in compared.torch.tapes.values()):
        return compared.judgement.fails("numeric", reused[0].text, reused[0])
    return None


def draws_have_their_parameters(compared: ComparedEvidence) -> Judgement | None:
    """What random numbers are drawn from."""
    drawn = compared.draws("parameter")
    return compared.judgement.fails("numeric", drawn[0].text, drawn[0]) if drawn else None


def draws_are_new(compared: ComparedEvidence) -> Judgement | None:
    """Random numbers that ``jit`` keeps."""
    if not compared.jax.frozen_draws:
        return None
    return compared.judgement.fails("numeric", "it draws the same random numbers in every call under jit")


def steps_agree(compared: ComparedEvidence) -> Judgement | None:
    """Optimizer steps, if these are asked for."""
    judgement, comparison = compared.judgement, compared.behavioral
    if compared.last != "behavioral":
        return None
    judgement.steps_part = bool(comparison.differences)
    if compared.conditioning.ill and comparison.differences:
        judgement.undecided.append(f"torch's own float32 and float64 part, and {describe(comparison.differences)}")
        comparison.differences = []
    if not compared.trainable:
        judgement.verdict.stages["behavioral"] = StageResult(reason="nothing to train")
        return None
    judgement.verdict.stages["behavioral"] = stage_result(comparison)
    return judgement.differs(comparison.differences) if comparison.differences else None


def generation_agrees(compared: ComparedEvidence) -> Judgement | None:
    """What ``generate`` returns, or why that was not compared."""
    judgement, moved = compared.judgement, compared.evidence.moved
    if compared.last != "behavioral":
        return None
    generation = generated(compared.evidence.torch, compared.jax, moved[0] if moved else None)
    if generation is None:
        return None
    stage, comparison = judgement.verdict.stages["behavioral"], generation.comparison
    judgement.undecided += generation.undecided
    if comparison.observed:
        together(stage, stage_result(comparison))
    if generation.reasons and stage.reason != NOTHING:
        how = f"generate was {'only partly' if comparison.observed else 'not'} compared"
        stage.reason = "; ".join([*filter(None, [stage.reason]), f"{how}: {'; '.join(generation.reasons)}"])
    if comparison.differences:
        return judgement.differs(comparison.differences)
    if isinstance(generation.error, Failure):
        return judgement.raised("behavioral", "generate fails", generation.error)
    if generation.error is not None:
        return judgement.fails("behavioral", f"in generate, {generation.error.text}", generation.error)
    return None


def initial_values_agree(compared: ComparedEvidence) -> Judgement | None:
    """The distributions of initial values."""
    initial = compared.evidence.initial
    return compared.judgement.differs(list(initial)) if initial else None


def all_was_compared(compared: ComparedEvidence) -> Judgement | None:
    """What nothing could be said of."""
    judgement = compared.judgement
    reasons = [*compared.open_questions(), *judgement.undecided]
    reasons += [f"{s}: {r.reason}" for s, r in judgement.verdict.stages.items() if r.reason == NOTHING]
    return judgement.concludes(VerdictKind.UNCHECKED, "; ".join(reasons)) if reasons else None


QUESTIONS: tuple[Callable[[ComparedEvidence], Judgement | None], ...] = (
    form_agrees,
    values_agree,
    nothing_is_raised,
    precision_is_kept,
    draws_are_independent,
    draws_have_their_parameters,
    draws_are_new,
    steps_agree,
    generation_agrees,
    initial_values_agree,
    all_was_compared,
)
