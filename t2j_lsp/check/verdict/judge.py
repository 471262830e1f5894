"""The verdict on one object, from what the two workers observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from t2j_lsp.check.messages import Failure, JaxObserved, Observations, TorchObserved, Trouble
from t2j_lsp.contract import STAGES, ObjectVerdict, Result, StageResult, VerdictKind

from .compare import Allowed, Comparison, Difference
from .generation import Generation, generated
from .refusals import refusal, refused
from .stages import (  # fmt: skip
    NOTHING,
    Conditioning,
    compare_all,
    compare_dtypes,
    describe,
    is_rounding,
    is_variant,
    merge,
    mode_of,
    stage_of,
    stage_result,
    together,
    trajectory,
)

IN_FLOAT32 = "in float32, "
"""How the names of differences begin that are in the user's precision only."""
_NO_PHASES = ("construct", "draws")
FORM = ("structure", "shape", "dtype")
"""Kinds of differences that values have no part in."""
_OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory")
_OF_THE_COMPILER = "INTERNAL: "
"""How XLA begins to say that what fails is its own, whatever the program means."""


@dataclass
class Judgement:
    """A verdict and what it rests on: the first difference or error, for finding its place."""

    verdict: ObjectVerdict
    difference: Difference | None = None
    differences: list[Difference] = field(default_factory=list)
    error: Trouble | None = None
    undecided: list[str] = field(default_factory=list)
    """Why these inputs decide nothing: other inputs may."""
    steps_part: bool = False
    """Whether the optimizer's steps part, by more than is known to be rounding's doing."""

    @property
    def values_part(self) -> bool:
        """Whether the verdict is `different` because values are, in a form that agrees."""
        different = self.verdict.verdict is VerdictKind.DIFFERENT
        return different and self.difference is not None and self.difference.kind not in FORM


def cannot_say(error: Failure) -> str | None:
    """Why an error of the JAX side says nothing about meaning; None where it is a failure of the conversion."""
    text = f"{error.type}: {error.message}"
    if refused(error):
        return refusal("jax", text[:400])
    if "ImportError" in error.bases:
        return f"the converted code needs a package that the JAX interpreter lacks: {error.message}"
    if "MemoryError" in error.bases or any(word in error.message for word in _OUT_OF_MEMORY):
        return f"the JAX side ran out of memory: {text[:200]}"
    if "JaxRuntimeError" in error.bases and error.message.startswith(_OF_THE_COMPILER):
        return f"XLA itself fails, on a program that JAX made of the conversion: {text[:200]}"
    if error.type == "NameError" and ("'torch'" in error.message or "'nn'" in error.message):
        return f"the conversion is not complete: {error.message}"
    return None


@dataclass
class Evidence:
    """What was observed of one object so far. A check adds to it step by step, and judges again."""

    torch: dict[int, TorchObserved] = field(default_factory=dict)
    """By precision: 64, and 32."""
    jax: dict[int, JaxObserved] = field(default_factory=dict)
    initial: list[Difference] | None = None
    """Differences between initial values; None where these were not compared."""
    compares_initial: bool = True
    """Whether initial values are to be PyTorch's."""
    moved: list[Observations] = field(default_factory=list)
    """What torch observed from perturbed states, which says how far optimizer steps carry rounding."""
    rounded: dict[int, list[Observations]] = field(default_factory=dict)
    """By precision, what torch observed rounding otherwise, which says where rounding alone decides."""


def judge(name: str, last: str, evidence: Evidence) -> Judgement:
    """The verdict on one object, with ``last`` the last stage that was asked for."""
    torch, jax, initial, moved = evidence.torch, evidence.jax, evidence.initial, evidence.moved
    verdict = ObjectVerdict(name, VerdictKind.EQUIVALENT, None, {s: StageResult() for s in STAGES})
    judgement = Judgement(verdict)
    result = jax[64]
    failed = result.errors.get("construct")
    if failed is not None:
        return _failed(judgement, "spec", "it can't be built with torch's state", failed)
    narrow = torch[32].observed if 32 in torch else torch[64].observed
    conditioning = Conditioning(torch[64].observed, narrow, torch[64].elements)
    skip, reasons = _uncontrolled(torch[64])
    unpaired = {p: d.text for p, draws in result.draws.items() for d in draws if d.kind == "kind"}
    result = replace(result, observed={p: o for p, o in result.observed.items() if p not in unpaired})
    reasons += sorted({f"its random numbers can't be paired: {text}" for text in unpaired.values()})
    numeric = _compared("numeric", torch[64], result, skip, conditioning.meaning)
    allowed = trajectory(conditioning.meaning, torch[64].observed, moved) if moved else conditioning.meaning
    behavioral = _compared("behavioral", torch[64], result, skip, allowed)
    numeric.differences[:0] = _not_trained(torch[64], result.observed)
    _leave_out_ill(judgement, numeric, conditioning)
    _leave_out_rounding(judgement, numeric, torch[64], [result], evidence.rounded.get(64, []))
    form = [d for d in numeric.differences if d.kind in FORM]
    _spec(verdict, form, initial, evidence.compares_initial or not torch[64].parameters)
    if form:
        judgement.difference = form[0]
        return _different(judgement, form)
    errors = _errors(torch[64], result)
    if not errors and 32 in jax:
        errors = [(f"{phase} in float32", error) for phase, error in _errors(torch[64], jax[32])]
    if 32 in jax and not numeric.differences and not unpaired:
        narrowed = Comparison(differences=_precision(torch, jax, skip | conditioning.ill, conditioning))
        _leave_out_rounding(judgement, narrowed, torch[32], [jax[32]], evidence.rounded.get(32, []), IN_FLOAT32)
        numeric.differences += narrowed.differences
    verdict.stages["numeric"] = stage_result(numeric)
    if len(errors) < len(result.errors) and not numeric.differences:
        verdict.stages["numeric"].reason = ON_HOST
    if last == "spec":
        verdict.stages["numeric"] = StageResult(reason="not asked for")
        return judgement
    if numeric.differences:
        judgement.difference = numeric.differences[0]
        draws = [d.text for problems in result.draws.values() for d in problems if d.kind != "kind"]
        return _different(judgement, numeric.differences, draws)
    for phase, error in errors:
        eager = phase.endswith("under jit") and phase.removesuffix(" under jit") in result.observed
        what = "it runs, but not under jit" if eager else f"it fails in {phase}"
        return _failed(judgement, "numeric", what, error)
    if 32 in jax and jax[32].halves and not torch[64].halves:
        half = jax[32].halves[0]
        judgement.error = half
        what = f"in float32, it computes in {half.dtype}, which torch does not"
        verdict.stages["numeric"].result, verdict.stages["numeric"].reason = Result.FAIL, what
        return _conclude(judgement, VerdictKind.DIFFERENT, what)
    reused = [d for problems in result.draws.values() for d in problems if d.kind == "reuse"]
    if reused and any(len(tape) > 1 for tape in torch[64].tapes.values()):
        judgement.error = reused[0]
        verdict.stages["numeric"].result, verdict.stages["numeric"].reason = Result.FAIL, reused[0].text
        return _conclude(judgement, VerdictKind.DIFFERENT, reused[0].text)
    drawn = [d for problems in result.draws.values() for d in problems if d.kind == "parameter"]
    if drawn:
        judgement.error = drawn[0]
        verdict.stages["numeric"].result, verdict.stages["numeric"].reason = Result.FAIL, drawn[0].text
        return _conclude(judgement, VerdictKind.DIFFERENT, drawn[0].text)
    if result.observed.get("draws", {}).get("frozen"):
        verdict.stages["numeric"].result = Result.FAIL
        verdict.stages["numeric"].reason = "it draws the same random numbers in every call under jit"
        return _conclude(judgement, VerdictKind.DIFFERENT, verdict.stages["numeric"].reason)
    if last == "behavioral":
        judgement.steps_part = bool(behavioral.differences)
        if conditioning.ill and behavioral.differences:
            judgement.undecided.append(f"torch's own float32 and float64 part, and {describe(behavioral.differences)}")
            behavioral.differences = []
        _behavioral(judgement, behavioral, bool(torch[64].parameters))
        _generation(judgement, generated(torch, jax[64], moved[0] if moved else None))
    if verdict.verdict is VerdictKind.EQUIVALENT and initial:
        judgement.difference = initial[0]
        return _different(judgement, list(initial))
    if verdict.verdict is VerdictKind.EQUIVALENT:
        reasons += judgement.undecided
        reasons += [f"{s}: {r.reason}" for s, r in verdict.stages.items() if r.reason == NOTHING]
        if reasons:
            return _conclude(judgement, VerdictKind.UNCHECKED, "; ".join(reasons))
    return judgement


ON_HOST = "compared without jit: it returns Python numbers or NumPy arrays, as in PyTorch, which jit has no values for"
_READS = ("ConcretizationTypeError", "TracerIntegerConversionError", "TracerArrayConversionError")
"""What JAX raises under ``jit`` where a program asks an array for its values."""


def _errors(torch: TorchObserved, jax: JaxObserved) -> list[tuple[str, Failure]]:
    """The errors by phase, but for those of a function that is not for ``jit``: one that returns values of the host.

    A module is for ``jit``, whatever its ``forward`` returns beside its output.
    """
    if not torch.on_host or torch.parameters:
        return list(jax.errors.items())
    without = {f"{phase} under jit" for phase in jax.observed}
    if not torch.cotangents:  # It has no output with a gradient.
        without |= {"train", "train under jit"}
    return [(phase, error) for phase, error in jax.errors.items() if phase not in without or error.type not in _READS]


INITIAL_VALUES = "initial values were not compared: they are left to Flax, and not PyTorch's"


def _spec(verdict: ObjectVerdict, form: list[Difference], initial: Sequence[Difference] | None, compared: bool) -> None:
    observed = ["construction", "parameter and buffer names and shapes", "output structure, shapes and dtypes"]
    observed += [] if initial is None else ["distributions of initial values"]
    failed = [*form, *(initial or ())]
    reason = describe(failed) if failed else None if compared else INITIAL_VALUES
    verdict.stages["spec"] = StageResult(Result.FAIL if failed else Result.PASS, reason, observed=observed)


def _not_trained(torch: TorchObserved, observed: dict[str, Observations]) -> list[Difference]:
    """Parameters that torch trains and the conversion does not."""
    for phase, differences in observed.items():
        if phase.startswith("train"):
            names = [n for n, trained in torch.parameters.items() if trained]
            missing = [n for n in names if f"gradient of parameter: {n}" not in differences]
            what = "is trained in torch and is no nnx.Param in JAX"
            return [Difference(f"gradient of parameter: {n}", what, "structure") for n in missing]
    return []


def _compared(stage: str, torch: TorchObserved, jax: JaxObserved, skip: set[str], allowed: Allowed) -> Comparison:
    """The comparison of one stage's observations in every phase of the JAX side."""
    wanted = {name: tree for name, tree in torch.observed.items() if stage_of(name) == stage}
    phases = [observed for phase, observed in jax.observed.items() if phase not in ("construct", "draws")]
    return merge(compare_all(wanted, observed, skip, allowed) for observed in phases)


def _uncontrolled(torch: TorchObserved) -> tuple[set[str], list[str]]:
    """Observations with randomness that can't be replayed, and why there is no verdict on them."""
    skip: set[str] = set()
    reasons = []
    for mode, uncontrolled in torch.uncontrolled.items():
        if uncontrolled:
            skip |= {n for n in torch.observed if mode_of(n) == mode}
            reasons.append(f"its random numbers in {mode} mode can't be replayed, so only the rest was compared")
    return skip, reasons


def _leave_out_ill(judgement: Judgement, comparison: Comparison, conditioning: Conditioning) -> None:
    """Takes away differences where torch's own float32 and float64 part: there rounding alone may decide a branch."""
    doubtful = [d for d in comparison.differences if d.kind not in FORM and conditioning.is_ill(d.name)]
    if doubtful:
        comparison.differences = [d for d in comparison.differences if d not in doubtful]
        doubtful = [d for d in doubtful if not is_variant(d.name)]
    if doubtful:
        judgement.undecided.append(f"torch's own float32 and float64 part on these inputs, where {describe(doubtful)}")


def _leave_out_rounding(
    judgement: Judgement,
    comparison: Comparison,
    torch: TorchObserved,
    jax: list[JaxObserved],
    rounded: list[Observations],
    prefix: str = "",
) -> None:
    """Takes away differences that are no larger than what torch's own rounding makes: a value on a step's edge."""
    if not rounded:
        return
    phases = [observed for kept in jax for phase, observed in kept.observed.items() if phase not in _NO_PHASES]
    steps = [
        d for d in comparison.differences
        if d.kind in ("value", "integer")
        and is_rounding(d.name.removeprefix(prefix), torch.observed, phases, rounded)
    ]  # fmt: skip
    comparison.differences = [d for d in comparison.differences if d not in steps]
    telling = [d for d in steps if not is_variant(d.name.removeprefix(prefix))]
    if telling:
        judgement.undecided.append(f"rounding alone moves a value across a step, where {describe(telling)}")


def _precision(
    torch: dict[int, TorchObserved], jax: dict[int, JaxObserved], skip: set[str], conditioning: Conditioning
) -> list[Difference]:
    """Differences in the user's precision: dtypes, and values much farther from the truth than torch's."""
    differences: list[Difference] = []
    for phase, observed in jax[32].observed.items():
        if phase in ("construct", "draws"):
            continue
        differences += compare_dtypes(torch[32].observed, observed, jax[32].x64)
        numeric = {n: v for n, v in torch[64].observed.items() if stage_of(n) == "numeric"}
        differences += compare_all(numeric, observed, skip, conditioning.precision).differences
    return [Difference(f"{IN_FLOAT32}{d.name}", d.what, d.kind) for d in differences]


def _behavioral(judgement: Judgement, comparison: Comparison, trainable: bool) -> None:
    verdict = judgement.verdict
    if not trainable:
        verdict.stages["behavioral"] = StageResult(reason="nothing to train")
        return
    verdict.stages["behavioral"] = stage_result(comparison)
    if comparison.differences:
        judgement.difference = comparison.differences[0]
        _different(judgement, comparison.differences)


def _generation(judgement: Judgement, generation: Generation | None) -> None:
    """Adds what `generate` returned, or why it was not compared, to the stage."""
    stage = judgement.verdict.stages["behavioral"]
    if generation is None or judgement.verdict.verdict is not VerdictKind.EQUIVALENT:
        return
    judgement.undecided += generation.undecided
    if generation.comparison.observed:
        together(stage, stage_result(generation.comparison))
    if generation.reasons and stage.reason != NOTHING:
        how = "only partly compared" if generation.comparison.observed else "not compared"
        stage.reason = "; ".join(
            [*filter(None, [stage.reason]), f"generate was {how}: {'; '.join(generation.reasons)}"]
        )
    if generation.comparison.differences:
        judgement.difference = generation.comparison.differences[0]
        _different(judgement, generation.comparison.differences)
    elif isinstance(generation.error, Failure):
        _failed(judgement, "behavioral", "generate fails", generation.error)
    elif generation.error is not None:
        judgement.error, stage.result, stage.reason = (
            generation.error,
            Result.FAIL,
            f"in generate, {generation.error.text}",
        )
        _conclude(judgement, VerdictKind.DIFFERENT, stage.reason)


def _different(judgement: Judgement, differences: list[Difference], causes: Sequence[str] = ()) -> Judgement:
    judgement.differences = differences
    return _conclude(judgement, VerdictKind.DIFFERENT, "; ".join([*causes, describe(differences)]))


def _failed(judgement: Judgement, stage: str, what: str, error: Failure) -> Judgement:
    """An error on the JAX side: a failure of the conversion, or the reason why nothing can be said."""
    text = f"{what}: {error}"
    judgement.error = error
    reason = cannot_say(error)
    if reason is not None:
        judgement.verdict.stages[stage] = StageResult(reason=reason)
        return _conclude(judgement, VerdictKind.UNCHECKED, reason)
    result = judgement.verdict.stages[stage]
    result.result, result.reason = Result.FAIL, text
    return _conclude(judgement, VerdictKind.DIFFERENT, text)


def _conclude(judgement: Judgement, kind: VerdictKind, reason: str) -> Judgement:
    judgement.verdict.verdict = kind
    judgement.verdict.reason = reason
    return judgement
