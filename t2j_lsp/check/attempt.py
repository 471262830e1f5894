"""One object's check: steps that add to the evidence until it decides, then where the two sides part, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from t2j_lsp.check.difference.experiment import Experiment
from t2j_lsp.check.difference.explain import BYTES, Run, explanation
from t2j_lsp.check.difference.localise import Alignment
from t2j_lsp.check.difference.locate import Locator, is_wide
from t2j_lsp.check.messages import JaxObserved, TorchObserved, Traced
from t2j_lsp.check.process.budget import INITIAL, NARROW, TimeBudget
from t2j_lsp.check.process.budget import OWN_TRAINING as LONGER
from t2j_lsp.check.process.worker import RemoteError, TimedOut
from t2j_lsp.check.program.counterparts import Counterpart
from t2j_lsp.check.program.objects import CheckedObject
from t2j_lsp.check.program.slice import Slice, Slicer
from t2j_lsp.check.training.comparison import OwnTraining
from t2j_lsp.check.verdict.compare import Difference
from t2j_lsp.check.verdict.evidence import Evidence, Judgement, cannot_say, of_the_compiler
from t2j_lsp.check.verdict.generation import calls_of
from t2j_lsp.check.verdict.initial import compare_initial
from t2j_lsp.check.verdict.judge import judge
from t2j_lsp.check.verdict.obstacles import failed_at_gap, obstacle
from t2j_lsp.check.verdict.refusals import refusal
from t2j_lsp.contract import Divergence, Explanation, ObjectVerdict, Result, StageResult, VerdictKind

from .inputs import OWN_TRAINING
from .preparing import Less, Preparing, comment_wanted, cut_jax, pairing_of, shared_names
from .requests import InitialRequest, JaxInitialRequest, JaxRequest, TorchRequest
from .rounding import PERTURBATIONS, Rounding
from .session import CheckSession
from .without_jit import differ_without_jit

STEPS = 3
PAIRED_BY_ORDER = (
    "its parameters were paired with torch's by their order alone, which may be wrong; say which is which: "
    '# t2j: weights={"w1": "fc1.weight.T"}'
)
DRAWS = 3
"""Inputs drawn anew at most so often, where rounding alone makes torch differ from itself."""


def unchecked(name: str, reason: str) -> ObjectVerdict:
    """A verdict that says why there is none."""
    return ObjectVerdict(name, VerdictKind.UNCHECKED, reason)


class NoVerdictError(Exception):
    """Why nothing can be said of an object."""


class Attempt:
    """The check of one object within a budget; with ``less``, of smaller inputs."""

    def __init__(
        self,
        session: CheckSession,
        preparing: Preparing,
        locator: Locator,
        item: CheckedObject,
        other: Counterpart,
        budget: TimeBudget,
        less: Less = Less.NOTHING,
    ) -> None:
        self.session, self.preparing, self.locator = session, preparing, locator
        self.settings, self.requests = session.settings, session.requests
        self.item, self.other = item, other
        self.budget, self.less = budget, less
        self.pairing = pairing_of(session.torch_side, item, other)
        self.optimizer_steps = STEPS if self.settings.stage == "behavioral" else 0

    # --- the steps ------------------------------------------------------------------------------------------------

    def verdict(self) -> ObjectVerdict:
        """The verdict, with inputs drawn anew where the first decide nothing. Raises CommentError and WorkerError."""
        try:
            for seed in range(self.settings.seed, self.settings.seed + DRAWS):
                self.evidence, self.careful = Evidence(compares_initial=self.settings.initial), False
                self.prepare(seed)
                self.observe_torch()
                try:
                    for step in (
                        self.observe_jax,
                        *self.ask_torch_what_rounding_does,
                        self.compile_with_care,
                        *self.ask_torch_what_rounding_does,
                        self.observe_narrow,
                        self.round_otherwise_in_float32,
                        self.compare_initial_values,
                        self.compile_narrow_with_care,
                    ):
                        if step():
                            self.judgement = self._judged(self.evidence, self.settings.stage)
                            self._note_difference()
                except RemoteError as error:
                    return self._not_loaded(error)
                if not self.judgement.undecided or self.differs:
                    self.find_the_place()
                    self.train_with_its_own()
                    break
        except NoVerdictError as reason:
            return unchecked(self.item.name, str(reason))
        return self._concluded()

    def prepare(self, seed: int) -> None:
        """Finds arguments, and cuts both programs to what the object needs."""
        try:
            self.preparation = self.preparing.of(self.item, seed, less=self.less)
        except RemoteError as error:
            raise NoVerdictError(self.session.torch_failed("does not load", error)) from error
        plan = self.preparation.prepared
        if plan.problems is not None:
            self.preparing.without_inputs.add(self.item.name)
            met = self.session.pool.refused["torch"]
            raise NoVerdictError(refusal("torch", met[0]) if met else comment_wanted(self.item, plan.problems))
        self.jax_slice = self._cut(self.session.jax_side)
        self.budget.smaller = plan.smaller
        self.call = TorchRequest(
            slice=self.preparation.torch_slice, init=plan.init, inputs=plan.inputs, variants=plan.variants, seed=seed
        )

    def observe_torch(self) -> None:
        """Torch in float64, then in float32 with the same state."""
        try:
            steps, left = self.optimizer_steps, self.budget.left
            request = replace(self.call, wide=True, steps=steps, generate={} if steps else None, seconds=left)
            wide = self.requests.observe_torch(request)
            self.evidence.torch[64] = wide
            self._leave_out(wide)
            again = replace(self.call, state=wide.state, cotangents=wide.cotangents, generate=calls_of(wide))
            self.evidence.torch[32] = self.requests.observe_torch(again)
        except RemoteError as error:
            raise NoVerdictError(self.session.torch_failed("fails in float64", error)) from error
        observed = {name: v for name, v in self.call.variants.items() if name in wide.observed}
        self.call = replace(self.call, variants=observed)

    # Each of these says whether it added to the evidence, which is then judged again.

    def observe_jax(self) -> bool:
        """The conversion in float64, with torch's state, inputs and draws."""
        self.evidence.jax[64] = observed = self._jax(self.jax_slice, seconds=self.budget.left)
        self.first_call = observed.first
        self._leave_out(observed)
        return True

    @property
    def ask_torch_what_rounding_does(self) -> tuple[Callable[[], bool], ...]:
        """Where steps or values part: torch a few times more. It tells sooner than XLA compiles again."""
        return (*[self.move_the_state] * PERTURBATIONS, self.round_otherwise)

    def move_the_state(self) -> bool:
        """Torch from a perturbed state, where steps part."""
        moved = self.evidence.moved
        if not self.judgement.steps_part or len(moved) == PERTURBATIONS:
            return False
        moved.append(self._rounding().moved(self.evidence.torch[64], self.optimizer_steps, len(moved)))
        return True

    def round_otherwise(self) -> bool:
        """Torch rounding otherwise, where values part."""
        return self._round_otherwise(64)

    def compile_with_care(self) -> bool:
        """Where XLA alone may be why the two differ, or fails itself, JAX once more."""
        if not self._xla_fails(64) and not self._doubtful(64):
            return False
        self.careful = True
        self.evidence.jax[64] = self._jax(self.jax_slice, careful=True)
        return True

    def observe_narrow(self) -> bool:
        """The conversion in the user's precision."""
        wide = self.evidence.jax[64]
        if self.differs or wide.errors or not self.budget.affords("float32", NARROW * self.first_call):
            return False
        self.evidence.jax[32] = observed = self._jax_narrow(self.jax_slice, self.careful, self.budget.left)
        self._leave_out(observed)
        return True

    def round_otherwise_in_float32(self) -> bool:
        """Torch in the user's precision rounding otherwise, where values part in that."""
        return 32 in self.evidence.jax and self._round_otherwise(32)

    def compare_initial_values(self) -> bool:
        """The distributions of initial values, where parameters have names."""
        torch, wide = self.evidence.torch[64], self.evidence.jax[64]
        if self.differs_in_float64 or not (self.settings.initial and torch.state) or wide.paired:
            return False
        if not self.budget.affords("distributions of initial values", INITIAL * self.first_call):
            return False
        self.evidence.initial = self._initial()
        return True

    def compile_narrow_with_care(self) -> bool:
        """Where XLA alone may be why the two differ in the user's precision, JAX once more."""
        narrow = 32 in self.evidence.jax and not self.differs_in_float64
        if not narrow or self.careful or not self._xla_fails(32) and (self.evidence.initial or not self._doubtful(32)):
            return False
        self.evidence.jax[32] = self._jax_narrow(self.jax_slice, careful=True)
        return True

    # --- what becomes of the judgement ----------------------------------------------------------------------------

    def find_the_place(self) -> None:
        """Where the two part, why as far as that can be found, and the values if asked for."""
        torch = self.evidence.torch[64]
        calls = calls_of(torch)
        self.torch_request = replace(self.call, state=torch.state, cotangents=torch.cotangents, generate=calls)
        self.jax_request = replace(self._jax_request(self.jax_slice, self.careful), generate=calls)
        try:
            alignment = self.locator.locate(self.judgement, self.torch_request, self.jax_request, torch.observed)
            if self.settings.causes and self.judgement.verdict.divergence is not None:
                sides = (self.session.torch_side, self.session.jax_side)
                Experiment(*sides, self.judgement, alignment, self._run_edited, self._judge_edited).run()
            if self.settings.explain:
                self._explain(alignment)
        except TimedOut:
            self.budget.left_out.append("where the two part")

    def train_with_its_own(self) -> None:
        """The file's own optimizer, schedule and loss, where all else agrees."""
        verdict = self.judgement.verdict.verdict
        if not self.optimizer_steps or not self.item.is_class or verdict is not VerdictKind.EQUIVALENT:
            return
        code = self.preparation.code, [*shared_names(self.preparation), *self.other.init]
        sides = (self.session.torch_side, self.session.jax_side)
        own = OwnTraining(*sides, self.item, self.other.name, self.requests, code)
        self.session.limit = self.settings.timeout
        if own.training.torch is None or self.budget.affords(OWN_TRAINING, LONGER * self.first_call):
            own.judge(self.judgement, self.evidence.torch[64], self.torch_request, self.jax_request)
        for kind in self.session.marks:
            self.session.marks[kind] |= own.marks[kind]

    # --- what they rest on ----------------------------------------------------------------------------------------

    @property
    def differs(self) -> bool:
        """Whether the evidence so far says `different`."""
        return self.judgement.verdict.verdict is VerdictKind.DIFFERENT

    def _judged(self, evidence: Evidence, last: str) -> Judgement:
        return judge(self.item.name, last, evidence)

    def _note_difference(self) -> None:
        if 32 not in self.evidence.jax and self.evidence.initial is None:
            self.differs_in_float64 = self.differs

    def _leave_out(self, observed: TorchObserved | JaxObserved) -> None:
        """Notes what a run left out: one that repeats it with more care has no more time."""
        self.budget.left_out += observed.left_out
        left = {n: v for n, v in self.call.variants.items() if n not in observed.left_out}
        self.call = replace(self.call, variants=left)

    def _rounding(self) -> Rounding:
        return Rounding(self.requests, self.call)

    def _round_otherwise(self, bits: int) -> bool:
        """Asks whether torch's own rounding makes values part."""
        if bits in self.evidence.rounded or not self.judgement.values_part:
            return False
        self.evidence.rounded[bits] = self._rounding().otherwise(self.evidence.torch[64], wide=bits == 64)
        return True

    def _xla_fails(self, bits: int) -> bool:
        """Whether XLA fails on the CPU: the gradient of a padded array that is indexed needs its simplifier."""
        errors = self.evidence.jax[bits].errors.values()
        return self.session.pool.device_name == "cpu" and any(map(of_the_compiler, errors))

    def _doubtful(self, bits: int) -> bool:
        """Whether XLA alone may be why values differ: on the CPU, unless they do so without ``jit``, too."""
        torch, jax = self.evidence.torch[bits], self.evidence.jax[bits]
        if not self.judgement.values_part or jax.errors or self.session.pool.device_name != "cpu":
            return False
        if bits == 32:
            return True
        request = replace(self._jax_request(self.jax_slice), seconds=self.budget.left)
        evaluated = jax.observed.get("eval")
        return not differ_without_jit(self.requests, request, torch.observed, evaluated, self.judgement.differences)

    def _jax_request(self, part: Slice, careful: bool = False) -> JaxRequest:
        """A request for the conversion with what torch's run started from: its state, its cotangents, its draws."""
        torch = self.evidence.torch[64]
        run = {"state": torch.state, "cotangents": torch.cotangents, "tapes": torch.tapes, "varies": torch.varies}
        return self.call.as_a(JaxRequest, slice=part, pairing=self.pairing, careful=careful, **run)

    def _jax(
        self, part: Slice, steps: int | None = None, seconds: float | None = None, careful: bool = False
    ) -> JaxObserved:
        steps = self.optimizer_steps if steps is None else steps
        return self.requests.observe_jax(
            replace(
                self._jax_request(part, careful),
                wide=True,
                eager=self.settings.eager,
                gradients=True,
                steps=steps,
                nan=careful and (part is not self.jax_slice or self.evidence.has_nan),
                seconds=seconds,
                generate=calls_of(self.evidence.torch[64]) if steps else None,
            )
        )

    def _jax_narrow(self, part: Slice, careful: bool = False, seconds: float | None = None) -> JaxObserved:
        return self.requests.observe_jax(replace(self._jax_request(part, careful), varies=False, seconds=seconds))

    def _initial(self) -> list[Difference] | None:
        """Differences between initial values; None where they can't be compared."""
        try:
            request = InitialRequest(slice=self.preparation.torch_slice, init=self.call.init, wide=True)
            torch = self.requests.initial(request)
            if not torch.values:
                return None
            pairing, count = self.pairing, torch.count
            jax = self.requests.initial(
                request.as_a(JaxInitialRequest, slice=self.jax_slice, pairing=pairing, count=count)
            )
        except RemoteError:
            return None
        return compare_initial(torch.values, jax.values, torch.seeded)

    def _cut(self, side: Slicer) -> Slice:
        """What the object's counterpart needs, and what its arguments name, of a JAX text."""
        return cut_jax(side, self.other, self.preparation)

    # --- where and why --------------------------------------------------------------------------------------------

    def _judge_edited(self, text: str) -> Judgement:
        """The judgement on an edited conversion, without optimizer steps."""
        part = self._cut(self.session.jax_side.edited(text))
        evidence = Evidence(self.evidence.torch)
        evidence.jax[64] = self._jax(part, steps=0, careful=self.careful)
        if not evidence.jax[64].errors:
            evidence.jax[32] = self._jax_narrow(part, self.careful)
        return self._judged(evidence, "numeric")

    def _run_edited(self, text: str) -> Traced:
        """One run of an edited conversion."""
        part = self._cut(self.session.jax_side.edited(text))
        shown = self.locator.shown(self.judgement, self.jax_request)
        return self.requests.trace(shown.of_jax(replace(self.jax_request, slice=part)))

    def _explain(self, alignment: Alignment | None) -> None:
        """Adds the values of both sides to the verdict."""
        alignment = alignment or self.locator.aligned(self.judgement, self.torch_request, self.jax_request, BYTES)
        if alignment is not None:
            self.judgement.verdict.explanation = self._explained(alignment)

    def _explained(self, alignment: Alignment) -> Explanation:
        """The values of both sides, as they were in the run that shows the difference."""
        name = self.judgement.difference.name if self.judgement.difference else ""
        bits = 64 if is_wide(name) else 32
        observed = self.evidence.jax[bits].observed.values() if bits in self.evidence.jax else ()
        explained = Run(
            self.locator.shown(self.judgement, self.jax_request).mode,
            is_wide(name),
            (_lines(self.torch_request.slice), _lines(self.jax_request.slice)),
            self.judgement.verdict.divergence,
            tuple(self.judgement.differences),
            self.evidence.torch[bits].observed,
            next((tree for tree in observed if any(n in name for n in tree)), None),
            alignment.error is not None,
            self.locator.place(alignment.error.frames) if alignment.error is not None else None,
        )
        return explanation(alignment, explained)

    # --- the end --------------------------------------------------------------------------------------------------

    def _concluded(self) -> ObjectVerdict:
        judgement, name = self.judgement, self.item.name
        _add(judgement.verdict.stages["numeric"], self.budget.said())
        if self.differs and self.evidence.jax[64].paired_by_order:
            return unchecked(name, f"{PAIRED_BY_ORDER}; so paired, {judgement.verdict.reason}")
        reason = obstacle(judgement, self.session.refused, self.session.jax_side, self.jax_slice)
        return judgement.verdict if reason is None else unchecked(name, reason)

    def _not_loaded(self, error: RemoteError) -> ObjectVerdict:
        """The verdict where the converted file can't even be imported."""
        failure, name = error.failure, self.item.name
        reason = cannot_say(failure) or failed_at_gap(self.session.jax_side, self.jax_slice, failure.frames)
        if reason is None and "Exception" not in failure.bases:
            reason = f"the converted code ended the run: {error}"
        if reason is not None:
            return unchecked(name, reason)
        verdict = ObjectVerdict(name, VerdictKind.DIFFERENT, f"the converted code does not load: {error}")
        verdict.stages["spec"] = StageResult(Result.FAIL, verdict.reason)
        verdict.divergence = Divergence(*self.locator.loading(failure.frames), str(error))
        return verdict


def _lines(part: Slice) -> dict[str, list[str]]:
    """The lines of the files that run, by path."""
    return {m.path: m.text.splitlines() for m in part.modules}


def _add(stage: StageResult, text: str | None) -> None:
    """Says something more of a stage."""
    stage.reason = "; ".join(filter(None, [stage.reason, text])) or None
