"""The evidence on one object compared: what of the differences counts, and what decides nothing."""

from __future__ import annotations

import numpy as np

from t2j_lsp.check.messages import DrawProblem, Failure, JaxObserved, Observations, TorchObserved, Tree

from .compare import Allowed, Comparison, Difference, arrays_of
from .evidence import FORM, Evidence, Judgement, of_the_compiler
from .stages import (  # fmt: skip
    Conditioning,
    compare_all,
    compare_dtypes,
    describe,
    is_rounding,
    is_variant,
    merge,
    mode_of,
    stage_of,
    trajectory,
)

IN_FLOAT32 = "in float32, "
"""How the names of differences begin that are in the user's precision only."""
_NO_PHASES = ("construct", "draws")
_READS = ("ConcretizationTypeError", "TracerIntegerConversionError", "TracerArrayConversionError")
"""What JAX raises under ``jit`` where a program asks an array for its values."""


class ComparedEvidence:
    """One object's evidence, compared stage by stage, with its judgement as that grows.

    ``last`` is the last stage that was asked for.
    """

    def __init__(self, name: str, last: str, evidence: Evidence) -> None:
        self.last, self.evidence = last, evidence
        self.judgement = Judgement.equivalent(name)
        self.torch, self.jax = evidence.torch[64], evidence.jax[64]
        self.narrow = evidence.jax.get(32)
        """The conversion in the user's precision."""
        torch_narrow = evidence.torch.get(32, self.torch).observed
        self.conditioning = Conditioning(self.torch.observed, torch_narrow, self.torch.elements)
        self.skip, self.unpaired = _uncontrolled(self.torch), self._unpaired()
        self.observed = {phase: o for phase, o in self.jax.observed.items() if phase not in self.unpaired}
        """What JAX observed, by phase, with draws that are torch's."""
        self.numeric = self._compared("numeric", self.conditioning.meaning)
        """The comparison of values and gradients; that in the user's precision comes in later."""
        self.behavioral = self._compared("behavioral", self._steps_allowed())
        self.numeric.differences[:0] = _not_trained(self.torch, self.observed)
        self._leave_out_ill()
        self._leave_out_rounding(self.numeric, 64)

    @property
    def trainable(self) -> bool:
        """Whether it has parameters."""
        return bool(self.torch.parameters)

    @property
    def form(self) -> list[Difference]:
        """The differences that values have no part in."""
        return [d for d in self.numeric.differences if d.kind in FORM]

    def draws(self, kind: str) -> list[DrawProblem]:
        """The draws of the JAX side with one kind of problem."""
        return [d for problems in self.jax.draws.values() for d in problems if d.kind == kind]

    def open_questions(self) -> list[str]:
        """Why randomness leaves something that was not compared."""
        modes = [mode for mode, uncontrolled in self.torch.uncontrolled.items() if uncontrolled]
        unreplayed = [f"its random numbers in {m} mode can't be replayed, so only the rest was compared" for m in modes]
        texts = {f"its random numbers can't be paired: {text}" for text in self.unpaired.values()}
        return unreplayed + sorted(texts)

    def errors(self, jax: JaxObserved) -> list[tuple[str, Failure]]:
        """The errors by phase, but for those of a function that is not for ``jit`` as it returns values of the host.

        A module is for ``jit``, whatever its ``forward`` returns beside its output. What XLA fails at operation by
        operation, where a check does without one of its passes, and compiles as a whole, is no error.
        """
        observed = self.observed if jax is self.jax else jax.observed
        if not self.torch.on_host or self.trainable:
            return [
                (phase, error)
                for phase, error in jax.errors.items()
                if not (of_the_compiler(error) and f"{phase} under jit" in observed)
            ]
        without = {f"{phase} under jit" for phase in observed}
        if not self.torch.cotangents:  # It has no output with a gradient.
            without |= {"train", "train under jit"}
        return [(p, error) for p, error in jax.errors.items() if p not in without or error.type not in _READS]

    def compare_narrow(self, narrow: JaxObserved) -> None:
        """Adds the differences in the user's precision: dtypes, and values much farther from the truth than torch's."""
        torch = self.evidence.torch[32]
        numeric = {n: v for n, v in self.torch.observed.items() if stage_of(n) == "numeric"}
        numeric |= {n: v for n in numeric if isinstance(v := torch.observed.get(n), int)}  # the number of bytes, say
        skip = self.skip | self.conditioning.ill
        comparison = Comparison()
        for observed in _phases(narrow.observed):
            differences = compare_dtypes(torch.observed, observed, narrow.x64)
            differences += compare_all(numeric, observed, skip, self.conditioning.precision).differences
            comparison.differences += [Difference(f"{IN_FLOAT32}{d.name}", d.what, d.kind) for d in differences]
        self._leave_out_rounding(comparison, 32)
        self.numeric.differences += comparison.differences

    def _unpaired(self) -> dict[str, str]:
        """By phase, the draw that is none of torch's kind."""
        return {phase: d.text for phase, draws in self.jax.draws.items() for d in draws if d.kind == "kind"}

    def _steps_allowed(self) -> Allowed:
        moved, meaning = self.evidence.moved, self.conditioning.meaning
        return trajectory(meaning, self.torch.observed, moved) if moved else meaning

    def _compared(self, stage: str, allowed: Allowed) -> Comparison:
        """The comparison of one stage's observations in every phase of the JAX side."""
        wanted = {name: tree for name, tree in self.torch.observed.items() if stage_of(name) == stage}
        wanted = {name: _without_poles(name, tree, self.torch.observed) for name, tree in wanted.items()}
        return merge(compare_all(wanted, observed, self.skip, allowed) for observed in _phases(self.observed))

    def _leave_out_ill(self) -> None:
        """Takes away differences where torch's own float32 and float64 part: rounding alone may decide a branch."""
        differences = self.numeric.differences
        doubtful = [d for d in differences if d.kind not in FORM and self.conditioning.is_ill(d.name)]
        self.numeric.differences = [d for d in differences if d not in doubtful]
        self._undecided("torch's own float32 and float64 part on these inputs", doubtful)

    def _leave_out_rounding(self, comparison: Comparison, bits: int) -> None:
        """Takes away differences that are no larger than what torch's own rounding makes: a value on a step's edge."""
        rounded = self.evidence.rounded.get(bits, [])
        if not rounded:
            return
        torch = self.evidence.torch[bits].observed
        jax = _phases(self.observed if bits == 64 else self.evidence.jax[bits].observed)
        values = [d for d in comparison.differences if d.kind in ("value", "integer")]
        steps = [d for d in values if is_rounding(_observation(d), torch, jax, rounded)]
        comparison.differences = [d for d in comparison.differences if d not in steps]
        self._undecided("rounding alone moves a value across a step", steps)

    def _undecided(self, why: str, differences: list[Difference]) -> None:
        """Notes differences that decide nothing, but for those with other inputs than the rest."""
        telling = [d for d in differences if not is_variant(_observation(d))]
        if telling:
            self.judgement.undecided.append(f"{why}, where {describe(telling)}")


def _without_poles(name: str, gradient: Tree, observed: Observations) -> Tree:
    """A gradient of an input without the elements where the output of its shape is infinite or no number.

    What a loss that isn't finite depends on there has no gradient, whatever either library computes of it.
    """
    outputs = [*arrays_of(observed.get("train output", observed.get("eval output"))).values()]
    if not name.startswith("gradient of input") or not isinstance(gradient, np.ndarray) or len(outputs) != 1:
        return gradient
    output = outputs[0]
    if not isinstance(output, np.ndarray) or output.shape != gradient.shape or output.dtype.kind not in "fc":
        return gradient
    finite = np.isfinite(output)
    return gradient if finite.all() or gradient.dtype.kind not in "fc" else np.where(finite, gradient, np.nan)


def _observation(difference: Difference) -> str:
    return difference.name.removeprefix(IN_FLOAT32)


def _phases(observed: dict[str, Observations]) -> list[Observations]:
    """What was observed in each phase that calls the object."""
    return [o for phase, o in observed.items() if phase not in _NO_PHASES]


def _uncontrolled(torch: TorchObserved) -> set[str]:
    """Observations with randomness that can't be replayed."""
    modes = {mode for mode, uncontrolled in torch.uncontrolled.items() if uncontrolled}
    return {name for name in torch.observed if mode_of(name) in modes}


def _not_trained(torch: TorchObserved, observed: dict[str, Observations]) -> list[Difference]:
    """Parameters that torch trains and the conversion does not."""
    for phase, differences in observed.items():
        if phase.startswith("train"):
            names = [n for n, trained in torch.parameters.items() if trained]
            missing = [n for n in names if f"gradient of parameter: {n}" not in differences]
            what = "is trained in torch and is no nnx.Param in JAX"
            return [Difference(f"gradient of parameter: {n}", what, "structure") for n in missing]
    return []
