"""The check of one object after the other: a slice, arguments, runs on both sides, the comparison, a verdict."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from t2j_lsp.check.arguments.plans import constructor, plans_for
from t2j_lsp.check.difference.experiment import Experiment
from t2j_lsp.check.difference.explain import BYTES, Run, explanation
from t2j_lsp.check.difference.localise import Alignment
from t2j_lsp.check.difference.locate import Locator, is_wide
from t2j_lsp.check.process.budget import INITIAL, NARROW, SHARE, Budget
from t2j_lsp.check.process.budget import OWN_TRAINING as LONGER
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.recall import Recall
from t2j_lsp.check.process.worker import Kind, RemoteError, TimedOut, WorkerError
from t2j_lsp.check.program.counterparts import Counterpart, counterpart
from t2j_lsp.check.program.marks import Mark, marks_of
from t2j_lsp.check.program.objects import CheckedObject, find_objects
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.training.comparison import OwnTraining
from t2j_lsp.check.verdict.compare import Comparison, Difference, compare
from t2j_lsp.check.verdict.coverage import Covered
from t2j_lsp.check.verdict.generation import calls_of
from t2j_lsp.check.verdict.initial import compare_initial
from t2j_lsp.check.verdict.judge import Judgement, cannot_say, judge
from t2j_lsp.check.verdict.obstacles import failed_at_gap, obstacle
from t2j_lsp.check.verdict.refusals import refusal, refused
from t2j_lsp.check.verdict.stages import aside
from t2j_lsp.contract import Divergence, Explanation, ObjectVerdict, Result, SourceMapEntry, StageResult, VerdictKind

from .inputs import OWN_TRAINING, CommentError, Plan

STEPS = 3
FIRST_RUN = 0.4
"""Of the time limit, for each request of a first run; the rest is for a second one with smaller inputs."""
SHORT = 20.0
"""Seconds for each request of a first run at least: with a time limit as short as that there is no second one."""
PAIRED_BY_ORDER = (
    "its parameters were paired with torch's by their order alone, which may be wrong; say which is which: "
    '# t2j: weights={"w1": "fc1.weight.T"}'
)
DRAWS = 3
"""Inputs drawn anew at most so often, where rounding alone makes torch differ from itself."""


@dataclass(frozen=True)
class Settings:
    """What a check does: the last stage to run, seconds for each request, the seed of inputs and state."""

    stage: str = "behavioral"
    timeout: float = 120.0
    seed: int = 0
    eager: bool = True
    initial: bool = True
    explain: bool = False
    """Whether verdicts are to have the values of both sides, statement by statement."""
    causes: bool = True
    """Whether edits that would mend a difference are tried, to say its cause."""
    budget: float | None = None
    """Seconds after which what only repeats is left out; a share of ``timeout`` where None."""


@dataclass(frozen=True)
class _Runs:
    """What both sides observed, by precision; the requests to run them once more; what slices another JAX text."""

    here: dict[str, Any]
    there: dict[str, Any]
    torch: dict[int, Any]
    jax: dict[int, Any]
    cut: Callable[[Slicer], dict[str, Any]]


@dataclass(frozen=True)
class _Prepared:
    """A torch object's slice, the texts in it that build its arguments, and the worker's answer to ``prepare``."""

    torch_slice: dict[str, Any]
    code: list[str]
    answer: dict[str, Any]


def unchecked(name: str, reason: str) -> ObjectVerdict:
    """A verdict that says why there is none."""
    return ObjectVerdict(name, VerdictKind.UNCHECKED, reason)


class FileCheck:
    """The check of the objects of one file, in an order in which one tells how to call the next."""

    def __init__(
        self,
        pool: Pool,
        torch_side: Slicer,
        jax_side: Slicer,
        settings: Settings,
        cancelled: Callable[[], bool],
        source_map: Sequence[SourceMapEntry] = (),
        recall: Recall | None = None,
    ) -> None:
        self.recall = recall
        self.locator = Locator(torch_side, jax_side, source_map, self.ask)
        self.pool = pool
        self.torch_side = torch_side
        self.jax_side = jax_side
        self.settings = settings
        self.limit = settings.timeout
        """Seconds for each request."""
        self.cancelled = cancelled
        self.seen: dict[str, list[Plan]] = {}
        self.users: dict[str, str] = {}
        """For a class that was called in the check of another: that other's name."""
        self.without_inputs: set[str] = set()
        self.refused: dict[Kind, dict[str, None]] = {"torch": {}, "jax": {}}
        """What was refused to either side in the runs of the present object."""
        self.covered = Covered(torch_side, jax_side)
        self.marks: dict[Kind, set[Mark]] = {"torch": set(), "jax": set()}
        """What ran on each side for the object that is checked."""

    def ask(self, kind: Kind, operation: str, **message: Any) -> Any:
        def send() -> Any:
            try:
                return self.pool.request(kind, operation, self.limit, self.cancelled, **message)
            finally:
                # What is tried first, to find inputs, need not be what is compared.
                self.refused[kind] |= dict.fromkeys(self.pool.refused[kind] if operation != "prepare" else ())

        # What JAX computes changes with every edit, but not how a module starts with every seed of the inputs.
        if self.recall is None or (kind == "jax" and operation != "initial"):
            answer = send()
        else:
            answer = self.recall.ask({"kind": kind, "operation": operation, **message}, send)
        if operation == "observe":
            self.marks[kind] |= marks_of(answer)
        return answer

    def object(self, item: CheckedObject) -> ObjectVerdict:
        """The verdict on one object."""
        if self.cancelled():
            return unchecked(item.name, "the check was cancelled")
        self.refused = {"torch": {}, "jax": {}}
        self.marks = {"torch": set(), "jax": set()}
        try:
            other = counterpart(self.jax_side, item)
            if other is None:
                return unchecked(item.name, f"the converted file has no {item.name}")
            verdict = self._run(item, other)
            verdict.ran = self.covered.ran(self.marks["torch"], self.marks["jax"])
            return verdict
        except (CommentError, WorkerError) as error:
            return unchecked(item.name, str(error))
        except Exception as error:  # noqa: BLE001 - the outermost guard of a check: a fault of ours is no verdict either
            return unchecked(item.name, f"the checker itself failed: {type(error).__name__}: {error}")

    def inputs_for(self, item: CheckedObject) -> dict[str, Any]:
        """How an object is built and called: ``init``, ``inputs``, ``shown``; or ``problems``, where nothing runs.

        Raises CommentError, WorkerError, and RemoteError where the PyTorch code does not load.
        """
        return self._prepared(item, self.settings.seed).answer

    def run_time(self, item: CheckedObject, other: Counterpart) -> dict[str, float]:
        """Seconds of one call of each side, and those that JAX compiles. Raises WorkerError, RemoteError too."""
        prepared = self._prepared(item, self.settings.seed)
        call = {k: prepared.answer[k] for k in ("init", "inputs")} | {"seed": self.settings.seed, "wide": False}
        init = constructor(self.torch_side, self.torch_side.main, item.name) if item.is_class else None
        pairing = other.to_plain([a.arg for a in init.args.args[1:]] if init else [])
        torch = self.ask("torch", "clock", slice=prepared.torch_slice, **call)
        part = self._cutter(other, prepared.code)(self.jax_side)
        jax = self.ask("jax", "clock", slice=part, pairing=pairing, state=torch["state"], **call)
        first, median = jax["seconds"]["first"], jax["seconds"]["median"]
        return {"torch": torch["seconds"]["median"], "jax": median, "compile": max(first - median, 0.0)}

    def _prepared(self, item: CheckedObject, seed: int, retry: bool = True, small: bool = False) -> _Prepared:
        """The first of the plans that runs, if need be one that the check of another class has shown."""
        plans = plans_for(self.torch_side, item, self.seen)
        code = [text for p in plans for a in (p.init, p.inputs) if a is not None for text in a.code]
        part = self.torch_side.cut(item.name, code).to_plain()
        answer: dict[str, Any] = self._prepare(part, plans, seed, small)
        if "problems" in answer and retry and self._through_others(item):
            return self._prepared(item, seed, retry=False, small=small)
        self._remember(item.name, answer.get("parts", {}))
        return _Prepared(part, code, answer)

    def _run(self, item: CheckedObject, other: Counterpart) -> ObjectVerdict:
        """The verdict, if need be by a second run with smaller inputs, in which nothing is repeated."""
        start, timeout = time.monotonic(), self.settings.timeout
        seconds = timeout * SHARE if self.settings.budget is None else self.settings.budget
        self.limit = max(timeout * FIRST_RUN, min(timeout, SHORT))
        try:
            return self._attempt(item, other, Budget(seconds))
        except TimedOut:
            if self.limit == timeout:
                raise
            self.limit = max(timeout - (time.monotonic() - start), timeout * (1 - FIRST_RUN))
            return self._again(item, other)
        finally:
            self.limit = timeout

    def _again(self, item: CheckedObject, other: Counterpart) -> ObjectVerdict:
        """The second run."""
        try:
            return self._attempt(item, other, Budget(0.0), small=True)
        except TimedOut as error:
            text = f"the {error.kind} side did not finish in {self.settings.timeout:.0f} s"
            return unchecked(item.name, f"{text}, with smaller inputs and nothing repeated either")

    def _attempt(self, item: CheckedObject, other: Counterpart, budget: Budget, small: bool = False) -> ObjectVerdict:
        init = constructor(self.torch_side, self.torch_side.main, item.name) if item.is_class else None
        pairing = other.to_plain([a.arg for a in init.args.args[1:]] if init else [])
        steps = STEPS if self.settings.stage == "behavioral" else 0
        judgement: Judgement | None = None
        for seed in range(self.settings.seed, self.settings.seed + DRAWS):
            try:
                prepared = self._prepared(item, seed, small=small)
            except RemoteError as error:
                return unchecked(item.name, self._torch_failed("does not load", error))
            torch_slice, ready = prepared.torch_slice, prepared.answer
            if "problems" in ready:
                self.without_inputs.add(item.name)
                met = self.pool.refused["torch"]
                return unchecked(item.name, refusal("torch", met[0]) if met else asking(item, ready["problems"]))
            cut = self._cutter(other, prepared.code)
            jax_slice = cut(self.jax_side)
            budget.smaller = ready["smaller"]
            call = {k: ready[k] for k in ("init", "inputs", "variants")} | {"seed": seed}
            try:
                torch = self._torch(torch_slice, call, steps, budget.left)
                budget.left_out += torch[64]["left_out"]
            except RemoteError as error:
                return unchecked(item.name, self._torch_failed("fails in float64", error))
            call["variants"] = {n: v for n, v in call["variants"].items() if n in torch[64]["observed"]}
            try:
                ours = call | {"pairing": pairing}
                jax = {64: self._jax(jax_slice, ours, torch[64], steps, budget.left)}
                budget.left_out += jax[64]["left_out"]
                ours = without(ours, jax[64]["left_out"])
                first = jax[64]["first"]
                judgement, moved = judge(item.name, self.settings.stage, torch, jax), None
                if judgement.steps_part:  # Torch tells what rounding makes of its steps sooner than XLA compiles.
                    moved = self._moved(torch_slice, call, torch[64], steps)
                    judgement = judge(item.name, self.settings.stage, torch, jax, None, moved)
                careful = self._doubtful(judgement, torch[64], jax[64])
                if careful:
                    jax[64] = self._jax(jax_slice, ours, torch[64], steps, careful=True)
                    judgement = judge(item.name, self.settings.stage, torch, jax, None, moved)
                if judgement.steps_part and moved is None:
                    moved = self._moved(torch_slice, call, torch[64], steps)
                    judgement = judge(item.name, self.settings.stage, torch, jax, None, moved)
                if judgement.verdict.verdict is not VerdictKind.DIFFERENT:
                    if not jax[64]["errors"] and budget.affords("float32", NARROW * first):
                        jax[32] = self._jax_narrow(jax_slice, ours, torch[64], careful, budget.left)
                        budget.left_out += jax[32]["left_out"]
                    named = self._has_initial(torch[64]) and not jax[64]["paired"]
                    named = named and budget.affords("distributions of initial values", INITIAL * first)
                    initial = self._initial(torch_slice, jax_slice, call) if named else None
                    judgement = judge(item.name, self.settings.stage, torch, jax, initial, moved)
                    if 32 in jax and not careful and not initial and self._doubtful(judgement, torch[32], jax[32]):
                        ours = without(ours, jax[32]["left_out"])
                        jax[32] = self._jax_narrow(jax_slice, ours, torch[64], careful=True)
                        judgement = judge(item.name, self.settings.stage, torch, jax, initial, moved)
            except RemoteError as error:
                return self._not_loaded(item.name, error)
            given = {k: torch[64][k] for k in ("state", "cotangents", "tapes", "varies")}
            given |= {**call, "steps": 0, "eager": False, "careful": careful, "generate": calls_of(torch[64])}
            if not judgement.undecided or judgement.verdict.verdict is VerdictKind.DIFFERENT:
                here, there = {"slice": torch_slice, **given}, {"slice": jax_slice, "pairing": pairing, **given}
                try:
                    self._place(judgement, _Runs(here, there, torch, jax, cut))
                except TimedOut:
                    budget.left_out.append("where the two part")
                if steps and item.is_class and judgement.verdict.verdict is VerdictKind.EQUIVALENT:
                    code = prepared.code, [*self._names(prepared.code), *other.init]
                    own = OwnTraining(self.torch_side, self.jax_side, item, other.name, self.ask, code)
                    self.limit = self.settings.timeout
                    if own.found.torch is None or budget.affords(OWN_TRAINING, LONGER * first):
                        own.judge(judgement, torch[64], here, there)
                    for kind in self.marks:
                        self.marks[kind] |= own.marks[kind]
                break
        assert judgement is not None
        _add(judgement.verdict.stages["numeric"], budget.said())
        if judgement.verdict.verdict is VerdictKind.DIFFERENT and jax[64]["paired_by_order"]:
            return unchecked(item.name, f"{PAIRED_BY_ORDER}; so paired, {judgement.verdict.reason}")
        reason = obstacle(judgement, self.refused, self.jax_side, jax_slice)
        if reason is not None:
            return unchecked(item.name, reason)
        return judgement.verdict

    def _torch_failed(self, what: str, error: RemoteError) -> str:
        met = [*self.refused["torch"], *self.pool.refused["torch"]]
        if met or refused(vars(error)):
            return refusal("torch", met[0] if met else str(error))
        return f"the PyTorch code {what}: {error}"

    def _cutter(self, other: Counterpart, code: list[str]) -> Callable[[Slicer], dict[str, Any]]:
        """Cuts what an object's counterpart needs, and what its arguments name, out of a JAX text."""
        return lambda side: side.cut(other.name, [*self._names(code), *other.init]).to_plain()

    @staticmethod
    def _names(code: list[str]) -> list[str]:
        """What arguments name that both files have."""
        return [text for text in code if "get_" not in text]

    def _place(self, judgement: Judgement, runs: _Runs) -> None:
        """Adds to a verdict where the two part, why as far as that can be found, and the values if asked for."""
        alignment = self.locator.locate(judgement, runs.here, runs.there, runs.torch[64]["observed"])
        if self.settings.causes and judgement.verdict.divergence is not None:

            def whole(text: str) -> Judgement:
                given = {k: runs.there[k] for k in ("init", "inputs", "variants", "seed", "pairing")}
                part, jax = runs.cut(self.jax_side.edited(text)), {}
                jax[64] = self._jax(part, given, runs.torch[64], 0, careful=runs.there["careful"])
                if not jax[64]["errors"]:
                    jax[32] = self._jax_narrow(part, given, runs.torch[64], runs.there["careful"])
                return judge(judgement.verdict.name, "numeric", runs.torch, jax)

            def run(text: str) -> Any:
                request = self.locator.request(judgement, runs.here)
                return self.ask(
                    "jax", "trace", **{**runs.there, **request, "slice": runs.cut(self.jax_side.edited(text))}
                )

            Experiment(self.torch_side, self.jax_side, judgement, alignment, run, whole).run()
        if self.settings.explain:
            alignment = alignment or self.locator.aligned(judgement, runs.here, runs.there, BYTES)
            if alignment is not None:
                judgement.verdict.explanation = self._explained(judgement, alignment, runs)

    def _explained(self, judgement: Judgement, alignment: Alignment, runs: _Runs) -> Explanation:
        """The values of both sides, as they were in the run that shows the difference."""
        name = judgement.difference.name if judgement.difference else ""
        bits = 64 if is_wide(name) else 32
        observed = runs.jax[bits]["observed"].values() if bits in runs.jax else ()
        found = Run(
            self.locator.request(judgement, runs.here)["mode"],
            is_wide(name),
            (_lines(runs.here), _lines(runs.there)),
            judgement.verdict.divergence,
            tuple(judgement.differences),
            runs.torch[bits]["observed"],
            next((tree for tree in observed if any(n in name for n in tree)), None),
            alignment.error is not None,
            self.locator.place(alignment.error["frames"]) if alignment.error is not None else None,
        )
        return explanation(alignment, found)

    def _torch(self, part: Any, call: dict[str, Any], steps: int, seconds: float | None) -> dict[int, Any]:
        given: dict[str, Any] = {"state": None, "cotangents": None, "steps": steps}
        given |= {"generate": {} if steps else None}
        wide = self.ask("torch", "observe", slice=part, wide=True, seconds=seconds, **given, **call)
        call = without(call, wide["left_out"])
        narrow = self.ask(
            "torch",
            "observe",
            slice=part,
            wide=False,
            state=wide["state"],
            cotangents=wide["cotangents"],
            steps=0,
            generate=calls_of(wide),
            **call,
        )
        return {64: wide, 32: narrow}

    def _moved(self, part: Any, call: dict[str, Any], torch: dict[str, Any], steps: int) -> Any:
        """What torch observes from a state a little aside, in float64."""
        given = {"state": aside(torch["state"]), "cotangents": torch["cotangents"], "steps": steps}
        moved = self.ask("torch", "observe", slice=part, wide=True, generate=calls_of(torch), **call, **given)
        return moved["observed"] | (moved["generate"]["observed"] if moved["generate"] else {})

    def _doubtful(self, judgement: Judgement, torch: dict[str, Any], jax: dict[str, Any]) -> bool:
        """Whether XLA alone may be why the two differ: on the CPU, unless they do so without ``jit``, too."""
        if judgement.verdict.verdict is not VerdictKind.DIFFERENT or jax["errors"] or self.pool.device_name != "cpu":
            return False
        eager = jax["observed"].get("eval")
        if eager is None:
            return True
        without_jit = Comparison()
        compare("eval output", torch["observed"]["eval output"], eager["eval output"], without_jit)
        return not without_jit.differences

    def _jax(
        self,
        part: Any,
        call: dict[str, Any],
        torch: dict[str, Any],
        steps: int,
        seconds: float | None = None,
        careful: bool = False,
    ) -> Any:
        given = {k: torch[k] for k in ("state", "cotangents", "tapes", "varies")}
        given |= {"wide": True, "eager": self.settings.eager, "gradients": True, "steps": steps, "careful": careful}
        given |= {"seconds": seconds}
        given |= {"generate": calls_of(torch) if steps else None}
        return self.ask("jax", "observe", slice=part, **call, **given)

    def _jax_narrow(
        self,
        part: Any,
        call: dict[str, Any],
        torch: dict[str, Any],
        careful: bool = False,
        seconds: float | None = None,
    ) -> Any:
        given = {k: torch[k] for k in ("state", "cotangents", "tapes")}
        given |= {"varies": False, "wide": False, "eager": False, "gradients": False, "steps": 0}
        given |= {"careful": careful, "seconds": seconds}
        return self.ask("jax", "observe", slice=part, **call, **given)

    def _has_initial(self, torch: dict[str, Any]) -> bool:
        return self.settings.initial and bool(torch["state"])

    def _initial(self, torch: Any, jax: Any, call: dict[str, Any]) -> list[Difference] | None:
        """Differences between initial values; None where they can't be compared."""
        try:
            given = {"init": call["init"], "wide": True}
            ours = self.ask("torch", "initial", slice=torch, **given)
            if not ours["values"]:
                return None
            theirs = self.ask("jax", "initial", slice=jax, count=ours["count"], **given)
        except RemoteError:
            return None
        return compare_initial(ours["values"], theirs["values"])

    def _through_others(self, item: CheckedObject) -> bool:
        """Runs other classes in ways that name this one, to see how it is called: ``ResNet(Bottleneck, ...)``."""
        for other in find_objects(self.torch_side, None):
            if not item.is_class or not other.is_class or other.name == item.name:
                continue
            plans = [
                p
                for p in plans_for(self.torch_side, other, self.seen)
                if _mentions(p, item.name) or other.uses(item.name)
            ]
            if not plans:
                continue
            part = self.torch_side.cut(other.name, [text for p in plans for text in p.init.code]).to_plain()
            with contextlib.suppress(RemoteError):
                ready = self._prepare(part, plans, self.settings.seed)
                self._remember(other.name, ready.get("parts", {}))
            if self.seen.get(item.name):
                return True
        return False

    def _prepare(self, part: Any, plans: list[Plan], seed: int, small: bool = False) -> Any:
        seconds = min(20.0, self.settings.timeout / 3)
        return self.ask(
            "torch",
            "prepare",
            slice=part,
            plans=[p.to_plain() for p in plans],
            seed=seed,
            wide=False,
            seconds=seconds,
            small=small,
        )

    def _remember(self, name: str, parts: dict[str, list[dict[str, Any]]]) -> None:
        for part, plans in parts.items():
            self.users.setdefault(part, name)
            self.seen.setdefault(part, [Plan.from_plain(p) for p in plans])

    def _not_loaded(self, name: str, error: RemoteError) -> ObjectVerdict:
        """The verdict where the converted file can't even be imported."""
        data = {"type": error.type, "message": error.message, "bases": error.bases, "frames": error.frames}
        reason = cannot_say(data) or failed_at_gap(self.jax_side, error.frames)
        if reason is None and "Exception" not in error.bases:
            reason = f"the converted code ended the run: {error}"
        if reason is not None:
            return unchecked(name, reason)
        verdict = ObjectVerdict(name, VerdictKind.DIFFERENT, f"the converted code does not load: {error}")
        verdict.stages["spec"] = StageResult(Result.FAIL, verdict.reason)
        verdict.divergence = Divergence(*self.locator.loading(error.frames), str(error))
        return verdict

    def settle(self, verdicts: dict[str, ObjectVerdict]) -> None:
        """A class without inputs of its own that ran inside a checked one has that one's verdict, where it agreed."""
        for name in self.without_inputs & set(self.users):
            user = verdicts.get(self.users[name])
            if user is not None and user.verdict is VerdictKind.EQUIVALENT:
                verdicts[name] = ObjectVerdict(
                    name, VerdictKind.EQUIVALENT, f"checked as part of {user.name}", dict(user.stages)
                )


def _lines(request: dict[str, Any]) -> dict[str, list[str]]:
    """The lines of the files that a request runs, by path."""
    return {m["path"]: m["text"].splitlines() for m in request["slice"]["modules"]}


def without(call: dict[str, Any], left_out: Sequence[str]) -> dict[str, Any]:
    """A call without the variants that were left out: a run that is repeated with more care has no more time."""
    return call | {"variants": {n: v for n, v in call["variants"].items() if n not in left_out}}


def _add(stage: StageResult, text: str | None) -> None:
    """Says something more of a stage."""
    stage.reason = "; ".join(filter(None, [stage.reason, text])) or None


def _mentions(plan: Plan, name: str) -> bool:
    return any(re.search(rf"\b{name}\b", text) for text in plan.init.code)


def asking(item: CheckedObject, problems: list[str]) -> str:
    """Why an object has no inputs, and the comment that would give them."""
    names = [a.arg for a in item.parameters]
    shown = ", ".join(f"{n}=f32[2, 3, 17, 19]" if i == 0 else f"{n}=..." for i, n in enumerate(names)) or "x=f32[2, 3]"
    init = "args=(...), " if item.is_class and item.has_parameters else ""
    tried = f" (tried: {problems[0]})" if problems else ""
    return f"no working inputs were found; write above it: # t2j: {init}{shown}{tried}"
