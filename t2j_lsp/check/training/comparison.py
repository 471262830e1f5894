"""Trains a module on both sides with the optimizer, the schedule and the loss of its own file, and compares."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from t2j_lsp.check.arguments.recipes import CRITERION, OPTIMIZER, SCHEDULER
from t2j_lsp.check.messages import Failure, JaxTrained, Observations, TorchObserved, TorchTrained, TrainingReference
from t2j_lsp.check.process.requests import WorkerRequests
from t2j_lsp.check.process.worker import CheckCancelled, RemoteError, WorkerError
from t2j_lsp.check.program.marks import Mark, marks_of
from t2j_lsp.check.program.objects import CheckedObject
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.protocol import NdArray
from t2j_lsp.check.requests import JaxRequest, JaxTrainRequest, TorchRequest, TorchTrainRequest
from t2j_lsp.check.verdict.compare import exact, scale_of
from t2j_lsp.check.verdict.evidence import Judgement, cannot_say
from t2j_lsp.check.verdict.stages import (
    CARRIED,
    compare_all,
    describe,
    perturbed,
    stage_of,
    stage_result,
    together,
    trajectory,
)
from t2j_lsp.contract import Divergence, Location, Result, StageResult, VerdictKind

from .statements import training_of

STEPS = 8
"""RAdam changes its step after five, and cosine annealing turns round after T_max."""
_WORDS = {OPTIMIZER: "optimizer", SCHEDULER: "schedule", CRITERION: "loss"}
_MOVES = 3
"""So many times torch's state is moved: what Adam makes of rounding goes one way or the other by chance."""
_MOST = 1e-4
"""As much of the scale as torch's own steps may make of `PERTURBATION`: a program's own optimizer may divide small
gradients by their own size, where the checker's is kept from it. Where they make more of it, nothing is compared."""


class OwnTraining:
    """The training of one module class, which has ``other`` as its name in the converted file.

    ``code`` is what the two files' objects need beside themselves.
    """

    def __init__(
        self,
        torch: Slicer,
        jax: Slicer,
        item: CheckedObject,
        other: str,
        requests: WorkerRequests,
        code: tuple[list[str], list[str]],
    ) -> None:
        self.training = training_of(torch, jax, item)
        self.names = (item.name, other)
        self.sides = (torch, jax)
        self.requests = requests
        self.code = code
        self.marks: dict[str, set[Mark]] = {"torch": set(), "jax": set()}
        """What ran on each side, where the training was compared."""

    def judge(
        self, judgement: Judgement, torch: TorchObserved, torch_request: TorchRequest, jax_request: JaxRequest
    ) -> None:
        """Adds to an equivalent verdict what the training shows.

        ``torch`` is what torch observed; the requests are to observe it once more.
        """
        behavioral = judgement.verdict.stages["behavioral"]
        if self.training.torch is None or torch.uncontrolled.get("train"):
            _only_adam(behavioral, self.training.problem)
            return
        line = self.training.torch.lines[OPTIMIZER]
        torch_run = self._torch(torch_request)
        if torch_run.reference is None:
            _only_adam(behavioral, f"the optimizer in line {line} can't be made alone: {torch_run.problem}")
            return
        self._choose(torch_run.reference.classes)
        jax_run = self._jax(jax_request, torch_run.reference)
        if jax_run.loss and CRITERION in self.training.torch.names:
            self.training = self.training.without_loss()
            return self.judge(judgement, torch, torch_request, jax_request)
        if jax_run.problem:
            _only_adam(behavioral, f"the optimizer in line {line} was not compared: {jax_run.problem}")
            return
        if jax_run.error is not None:
            self._failed(judgement, jax_run.error)
            return
        self._compare(judgement, torch_run, jax_run.observed, torch_request)
        self.marks = {"torch": marks_of(torch_run.ran), "jax": marks_of(jax_run.ran)}

    def _compare(
        self, judgement: Judgement, torch_run: TorchTrained, jax: Observations, torch_request: TorchRequest
    ) -> None:
        verdict, observed = judgement.verdict, torch_run.observed
        allowed: Callable[[str, NdArray, float], float] = _clipped if self.training.clips_without_divisor else exact
        if compare_all(observed, jax, (), allowed).differences:
            for seed in range(_MOVES):
                state = perturbed(torch_request.state or {}, seed)
                moved = self._torch(replace(torch_request, state=state)).observed
                chaotic = {d.name for d in compare_all(observed, moved, (), _most).differences}
                observed = {name: tree for name, tree in observed.items() if name not in chaotic}
                allowed = trajectory(allowed, observed, [moved], CARRIED * _MOST)
        for stage in ("numeric", "behavioral"):
            differences = compare_all({n: t for n, t in observed.items() if stage_of(n) == stage}, jax, (), allowed)
            if differences.observed:
                verdict.stages[stage] = together(verdict.stages[stage], stage_result(differences))
            if differences.differences and judgement.difference is None:
                judgement.difference, judgement.differences = differences.differences[0], differences.differences
                verdict.verdict, verdict.reason = VerdictKind.DIFFERENT, describe(differences.differences)
                (file, line), (other_file, other_line) = self.training.place(differences.differences[0].name)
                places = Location(file, line), Location(other_file, other_line)
                verdict.divergence = Divergence(*places, verdict.reason)
        assert torch_run.reference is not None
        verdict.stages["behavioral"].observed.append(self._with(torch_run.reference))

    def _choose(self, classes: dict[str, str]) -> None:
        """Notes which of several optimizers and schedules the run made."""
        torch, jax = self.training.torch, self.training.jax
        assert torch is not None and jax is not None
        for kind, called in classes.items():
            number = torch.chosen(kind, called)
            torch, jax = torch.at(kind, number), jax.at(kind, number)
            torch = replace(torch, calls={**torch.calls, kind: called})
        self.training = replace(self.training, torch=torch, jax=jax)

    def _with(self, reference: TrainingReference) -> str:
        """What the training was done with: ``its own optimizer SGD (line 12), schedule StepLR (line 13)``."""
        assert self.training.torch is not None
        recipe = self.training.torch
        used = [k for k in recipe.lines if k != CRITERION or reference.target is not None]
        text = ", ".join(f"{_WORDS[k]} {recipe.calls[k].rpartition('.')[2]} (line {recipe.lines[k]})" for k in used)
        line = f", with the command line `{' '.join(reference.command_line)}`" if reference.command_line else ""
        return f"its own {text}{line}" + "".join(f", without {what}" for what in self.training.left_out)

    def _torch(self, request: TorchRequest) -> TorchTrained:
        assert self.training.torch is not None
        part = self.sides[0].cut(self.names[0], [*self.code[0], *self.training.torch.code])
        recipe = self.training.torch
        asked = request.as_a(TorchTrainRequest, slice=part, recipe=recipe, wide=True, steps=STEPS)
        try:
            trained = self.requests.train_torch(asked)
        except (RemoteError, WorkerError) as error:
            trained = TorchTrained(problem=_said(error))
        if trained.problem is not None:
            trained.problem = re.sub(r"'self_(\w+)'", r"'self.\1'", trained.problem)
        return trained

    def _jax(self, request: JaxRequest, reference: TrainingReference) -> JaxTrained:
        assert self.training.jax is not None
        part = self.sides[1].cut(self.names[1], [*self.code[1], *self.training.jax.code])
        repeated = replace(reference, each_update=self.training.each_update)
        own = {"recipe": self.training.jax, "reference": repeated}
        asked = request.as_a(JaxTrainRequest, slice=part, wide=True, steps=STEPS, **own)
        try:
            return self.requests.train_jax(asked)
        except (RemoteError, WorkerError) as error:
            return JaxTrained(problem=_said(error))

    def _failed(self, judgement: Judgement, error: Failure) -> None:
        """The converted training raises where torch's does not."""
        assert self.training.jax is not None
        verdict = judgement.verdict
        text = f"the training fails: {error.type}: {error.message}"
        reason = cannot_say(error)
        if reason is not None:
            _only_adam(verdict.stages["behavioral"], reason)
            return
        judgement.error = error
        (file, line), (other_file, other_line) = self.training.place("")
        own = [number for name, number, _ in error.frames if name == self.training.jax.path]
        verdict.verdict, verdict.reason = VerdictKind.DIFFERENT, text
        verdict.stages["behavioral"].result, verdict.stages["behavioral"].reason = Result.FAIL, text
        places = Location(file, line), Location(other_file, own[-1] if own else other_line)
        verdict.divergence = Divergence(*places, text)


def _said(error: RemoteError | WorkerError) -> str:
    """Why there is no training: what ends a worker here is no verdict on the module, which was compared by then."""
    if isinstance(error, CheckCancelled):
        raise error
    return str(error)


def _only_adam(stage: StageResult, problem: str) -> None:
    """Says why the file's own optimizer was not used, if it has one."""
    if problem:
        stage.reason = "; ".join(filter(None, [stage.reason, f"trained with Adam only: {problem}"]))


def _clipped(name: str, values: NdArray, group: float) -> float:
    """Torch adds 1e-6 to the norm that it divides by, and `optax.clip_by_global_norm` does not."""
    return max(exact(name, values, group), 1e-5 * scale_of(values, group))


def _most(name: str, values: NdArray, group: float) -> float:
    return _MOST * scale_of(values, group)
