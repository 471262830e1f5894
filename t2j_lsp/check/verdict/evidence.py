"""What was observed of one object so far, and the judgement that it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from t2j_lsp.check.messages import Failure, JaxObserved, Observations, TorchObserved, Trouble
from t2j_lsp.check.protocol import as_float64
from t2j_lsp.contract import STAGES, ObjectVerdict, Result, StageResult, VerdictKind

from .compare import Difference, arrays_of, kind_of
from .refusals import refusal, refused
from .stages import describe

FORM = ("structure", "shape", "dtype")
"""Kinds of differences that values have no part in."""
_OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory")
_OF_THE_COMPILER = "INTERNAL: "
"""How XLA begins to say that what fails is its own, whatever the program means."""


@dataclass
class Evidence:
    """What was observed of one object so far. A check adds to it step by step, and it is judged again."""

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

    @property
    def has_nan(self) -> bool:
        """Whether any observation of either side in float64 holds NaN."""
        jax = self.jax[64].observed.values() if 64 in self.jax else ()
        trees = [tree for observed in (self.torch[64].observed, *jax) for tree in observed.values()]
        arrays = [array for tree in trees for array in arrays_of(tree).values()]
        return any(np.isnan(as_float64(a)).any() for a in arrays if kind_of(a) in ("floating", "complex"))


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

    @classmethod
    def equivalent(cls, name: str) -> Judgement:
        """The judgement on an object nothing is known against, before any stage."""
        return cls(ObjectVerdict(name, VerdictKind.EQUIVALENT, None, {s: StageResult() for s in STAGES}))

    @property
    def values_part(self) -> bool:
        """Whether the verdict is `different` because values are, in a form that agrees."""
        different = self.verdict.verdict is VerdictKind.DIFFERENT
        return different and self.difference is not None and self.difference.kind not in FORM

    def differs(self, differences: list[Difference], causes: Sequence[str] = ()) -> Judgement:
        """This judgement: `different`, because of what was compared."""
        self.difference, self.differences = differences[0], differences
        return self.concludes(VerdictKind.DIFFERENT, "; ".join([*causes, describe(differences)]))

    def fails(self, stage: str, reason: str, error: Trouble | None = None) -> Judgement:
        """This judgement: `different`, because of something besides values that makes the conversion fail a stage."""
        self.error = error
        self.verdict.stages[stage].result, self.verdict.stages[stage].reason = Result.FAIL, reason
        return self.concludes(VerdictKind.DIFFERENT, reason)

    def raised(self, stage: str, what: str, error: Failure) -> Judgement:
        """This judgement after an error of the JAX side: a failure of the conversion, or why nothing can be said."""
        reason = cannot_say(error)
        if reason is None:
            return self.fails(stage, f"{what}: {error}", error)
        self.error = error
        self.verdict.stages[stage] = StageResult(reason=reason)
        return self.concludes(VerdictKind.UNCHECKED, reason)

    def concludes(self, kind: VerdictKind, reason: str) -> Judgement:
        """This judgement, with a verdict and its reason."""
        self.verdict.verdict, self.verdict.reason = kind, reason
        return self


def of_the_compiler(error: Failure) -> bool:
    """Whether XLA itself fails, which it also does without a pass that a check does without."""
    return "JaxRuntimeError" in error.bases and error.message.startswith(_OF_THE_COMPILER)


def cannot_say(error: Failure) -> str | None:
    """Why an error of the JAX side says nothing about meaning; None where it is a failure of the conversion."""
    text = f"{error.type}: {error.message}"
    if refused(error):
        return refusal("jax", text[:400])
    if "ImportError" in error.bases:
        return f"the converted code needs a package that the JAX interpreter lacks: {error.message}"
    if "MemoryError" in error.bases or any(word in error.message for word in _OUT_OF_MEMORY):
        return f"the JAX side ran out of memory: {text[:200]}"
    if of_the_compiler(error):
        return f"XLA itself fails, on a program that JAX made of the conversion: {text[:200]}"
    if error.type == "NameError" and ("'torch'" in error.message or "'nn'" in error.message):
        return f"the conversion is not complete: {error.message}"
    return None
