"""The check of one object after the other: a slice, arguments, runs on both sides, the comparison, a verdict."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from t2j_lsp.contract import Divergence, Location, ObjectVerdict, Result, SourceMapEntry, StageResult, VerdictKind

from .compare import Difference
from .initial import compare_initial
from .inputs import CommentError, Plan
from .judge import Judgement, cannot_say, judge
from .localise import Alignment, Places, assignment, find, twin
from .objects import CheckedObject, find_objects
from .plans import plans_for
from .pool import Kind, Pool, RemoteError, WorkerError
from .protocol import Raised
from .recall import Recall
from .slice import Slicer
from .stages import mode_of

STEPS = 3
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
        self.source_map = source_map
        self.pool = pool
        self.torch_side = torch_side
        self.jax_side = jax_side
        self.settings = settings
        self.cancelled = cancelled
        self.seen: dict[str, list[Plan]] = {}
        self.users: dict[str, str] = {}
        """For a class that was called in the check of another: that other's name."""
        self.without_inputs: set[str] = set()

    def ask(self, kind: Kind, operation: str, **message: Any) -> Any:
        def send() -> Any:
            return self.pool.request(kind, operation, self.settings.timeout, self.cancelled, **message)

        if kind == "jax" or self.recall is None:
            return send()
        return self.recall.ask({"operation": operation, **message}, send)

    def object(self, item: CheckedObject) -> ObjectVerdict:
        """The verdict on one object."""
        if self.cancelled():
            return unchecked(item.name, "the check was cancelled")
        if not self.jax_side.defines(self.jax_side.main, item.name):
            return unchecked(item.name, f"the converted file has no {item.name}")
        try:
            plans = plans_for(self.torch_side, item, self.seen)
            return self._run(item, plans)
        except (CommentError, WorkerError) as error:
            return unchecked(item.name, str(error))
        except Exception as error:  # noqa: BLE001 - the outermost guard of a check: a fault of ours is no verdict either
            return unchecked(item.name, f"the checker itself failed: {type(error).__name__}: {error}")

    def inputs_for(self, item: CheckedObject, retry: bool = True) -> dict[str, Any]:
        """How an object is built and called: ``init``, ``inputs``, ``shown``; or ``problems``, where nothing runs.

        Raises CommentError, WorkerError, and RemoteError where the PyTorch code does not load.
        """
        plans = plans_for(self.torch_side, item, self.seen)
        code = [text for p in plans for a in (p.init, p.inputs) if a is not None for text in a.code]
        ready: dict[str, Any] = self._prepare(
            self.torch_side.cut(item.name, code).to_plain(), plans, self.settings.seed
        )
        if "problems" in ready and retry and self._through_others(item):
            return self.inputs_for(item, retry=False)
        self._remember(item.name, ready.get("parts", {}))
        return ready

    def _run(self, item: CheckedObject, plans: list[Plan], retry: bool = True) -> ObjectVerdict:
        code = [text for p in plans for a in (p.init, p.inputs) if a is not None for text in a.code]
        torch_slice = self.torch_side.cut(item.name, code).to_plain()
        jax_slice = self.jax_side.cut(item.name, [c for c in code if "get_" not in c]).to_plain()
        steps = STEPS if self.settings.stage == "behavioral" else 0
        judgement: Judgement | None = None
        for seed in range(self.settings.seed, self.settings.seed + DRAWS):
            try:
                ready = self._prepare(torch_slice, plans, seed)
            except RemoteError as error:
                return unchecked(item.name, f"the PyTorch code does not load: {error}")
            if "problems" in ready:
                if retry and self._through_others(item):
                    return self._run(item, plans_for(self.torch_side, item, self.seen), retry=False)
                self.without_inputs.add(item.name)
                return unchecked(item.name, asking(item, ready["problems"]))
            self._remember(item.name, ready["parts"])
            call = {k: ready[k] for k in ("init", "inputs", "variants")} | {"seed": seed}
            try:
                torch = self._torch(torch_slice, call, steps)
            except RemoteError as error:
                return unchecked(item.name, f"the PyTorch code fails in float64: {error}")
            call["variants"] = {n: v for n, v in call["variants"].items() if n in torch[64]["observed"]}
            try:
                jax = {64: self._jax(jax_slice, call, torch[64], steps)}
                judgement = judge(item.name, self.settings.stage, torch, jax)
                if judgement.verdict.verdict is not VerdictKind.DIFFERENT:
                    if not jax[64]["errors"]:
                        jax[32] = self._jax_narrow(jax_slice, call, torch[64])
                    initial = self._initial(torch_slice, jax_slice, call) if self._has_initial(torch[64]) else None
                    judgement = judge(item.name, self.settings.stage, torch, jax, initial)
            except RemoteError as error:
                return self._not_loaded(item.name, error)
            given = {k: torch[64][k] for k in ("state", "cotangents", "tapes", "varies")}
            given |= {**call, "steps": 0, "eager": False}
            if not judgement.undecided or judgement.verdict.verdict is VerdictKind.DIFFERENT:
                self._locate(judgement, {"slice": torch_slice, **given}, {"slice": jax_slice, **given})
                self._locate_raised(judgement, torch[64]["observed"])
                break
        assert judgement is not None
        return judgement.verdict

    def _torch(self, part: Any, call: dict[str, Any], steps: int) -> dict[int, Any]:
        wide = self.ask("torch", "observe", slice=part, wide=True, state=None, cotangents=None, steps=steps, **call)
        narrow = self.ask(
            "torch",
            "observe",
            slice=part,
            wide=False,
            state=wide["state"],
            cotangents=wide["cotangents"],
            steps=0,
            **call,
        )
        return {64: wide, 32: narrow}

    def _jax(self, part: Any, call: dict[str, Any], torch: dict[str, Any], steps: int) -> Any:
        given = {k: torch[k] for k in ("state", "cotangents", "tapes", "varies")}
        given |= {"wide": True, "eager": self.settings.eager, "gradients": True, "steps": steps}
        return self.ask("jax", "observe", slice=part, **call, **given)

    def _jax_narrow(self, part: Any, call: dict[str, Any], torch: dict[str, Any]) -> Any:
        given = {k: torch[k] for k in ("state", "cotangents", "tapes")}
        given |= {"varies": False, "wide": False, "eager": False, "gradients": False, "steps": 0}
        return self.ask("jax", "observe", slice=part, **call, **given)

    def _has_initial(self, torch: dict[str, Any]) -> bool:
        return self.settings.initial and bool(torch["parameters"])

    def _initial(self, torch: Any, jax: Any, call: dict[str, Any]) -> list[Difference] | None:
        """Differences between initial values; None where they can't be compared."""
        try:
            ours = self.ask("torch", "initial", slice=torch, wide=False, **call)
            if not ours["values"]:
                return None
            theirs = self.ask("jax", "initial", slice=jax, wide=False, count=ours["count"], **call)
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

    def _prepare(self, part: Any, plans: list[Plan], seed: int) -> Any:
        seconds = min(20.0, self.settings.timeout / 3)
        return self.ask(
            "torch", "prepare", slice=part, plans=[p.to_plain() for p in plans], seed=seed, wide=False, seconds=seconds
        )

    def _remember(self, name: str, parts: dict[str, list[dict[str, Any]]]) -> None:
        for part, plans in parts.items():
            self.users.setdefault(part, name)
            self.seen.setdefault(part, [Plan.from_plain(p) for p in plans])

    def _not_loaded(self, name: str, error: RemoteError) -> ObjectVerdict:
        """The verdict where the converted file can't even be imported."""
        data = {"type": error.type, "message": error.message, "bases": error.bases, "frames": error.frames}
        reason = cannot_say(data)
        if reason is None and "Exception" not in error.bases:
            reason = f"the converted code ended the run: {error}"
        if reason is not None:
            return unchecked(name, reason)
        verdict = ObjectVerdict(name, VerdictKind.DIFFERENT, f"the converted code does not load: {error}")
        verdict.stages["spec"] = StageResult(Result.FAIL, verdict.reason)
        place = self._place(error.frames)
        verdict.divergence = Divergence(self._beside(place), place, str(error))
        return verdict

    def _locate(self, judgement: Judgement, torch: dict[str, Any], jax: dict[str, Any]) -> None:
        """Finds the lines of a difference. ``torch`` and ``jax`` are requests to run the object once more."""
        verdict = judgement.verdict
        if verdict.verdict is not VerdictKind.DIFFERENT:
            return
        place = self._place(judgement.error["frames"]) if judgement.error else None
        places: Places = (self._beside(place), place)
        name = judgement.difference.name if judgement.difference else ""
        wide = not name.startswith("in float32")
        if name.startswith("initial values: "):
            attribute = "self." + name.removeprefix("initial values: ").partition(".")[0]
            verdict.divergence = Divergence(
                self._assigning(self.torch_side, attribute),
                self._assigning(self.jax_side, attribute),
                verdict.reason or "",
            )
            return
        mode = "train" if mode_of(name) == "train" and "train" in torch["tapes"] else "eval"
        request: dict[str, Any] = {"mode": mode, "wide": wide, "gradients": "gradient" in name}
        other = next((v for k, v in torch["variants"].items() if name.startswith(k)), None)
        request |= {"inputs": other} if other is not None else {}
        with contextlib.suppress(WorkerError, RemoteError):
            runs = self.ask("torch", "trace", **{**torch, **request}), self.ask("jax", "trace", **{**jax, **request})
            alignment = Alignment(*runs, wide=wide)
            if name:
                places = find(name, alignment) or places
            elif place is not None and places[0] is None:
                places = alignment.torch_line(place), place
        verdict.divergence = Divergence(*places, verdict.reason or "")

    def _locate_raised(self, judgement: Judgement, torch: dict[str, Any]) -> None:
        """Finds the line that raises in torch, and what became of it."""
        difference = judgement.difference
        raised = torch.get(difference.name) if difference is not None else None
        if isinstance(raised, Raised) and raised.line:
            line = twin(self.torch_side.text, raised.line, self.jax_side.text)
            place = None if line is None else Location(str(self.jax_side.path), line)
            judgement.verdict.divergence = Divergence(
                Location(raised.file, raised.line), place, judgement.verdict.reason or ""
            )

    def _place(self, frames: Sequence[Any]) -> Location | None:
        """The innermost line of the converted file that an error went through."""
        path = str(self.jax_side.path)
        lines = [line for file, line, _ in frames if file == path]
        return Location(path, lines[-1]) if lines else None

    def _assigning(self, side: Slicer, target: str) -> Location | None:
        line = assignment(side.text, target)
        return None if line is None else Location(str(side.path), line)

    def _beside(self, place: Location | None) -> Location | None:
        """The torch line that became a line of the converted file."""
        if place is None:
            return None
        entries = [e for e in self.source_map if e.line <= place.line <= e.end_line]
        if entries:
            line: int | None = min(entries, key=lambda e: e.end_line - e.line).source_line
        else:
            line = twin(self.jax_side.text, place.line, self.torch_side.text)
        return None if line is None else Location(str(self.torch_side.path), line)

    def settle(self, verdicts: dict[str, ObjectVerdict]) -> None:
        """A class without inputs of its own that ran inside a checked one has that one's verdict, where it agreed."""
        for name in self.without_inputs & set(self.users):
            user = verdicts.get(self.users[name])
            if user is not None and user.verdict is VerdictKind.EQUIVALENT:
                verdicts[name] = ObjectVerdict(
                    name, VerdictKind.EQUIVALENT, f"checked as part of {user.name}", dict(user.stages)
                )


def _mentions(plan: Plan, name: str) -> bool:
    return any(re.search(rf"\b{name}\b", text) for text in plan.init.code)


def asking(item: CheckedObject, problems: list[str]) -> str:
    """Why an object has no inputs, and the comment that would give them."""
    names = [a.arg for a in item.parameters]
    shown = ", ".join(f"{n}=f32[2, 3, 17, 19]" if i == 0 else f"{n}=..." for i, n in enumerate(names)) or "x=f32[2, 3]"
    init = "args=(...), " if item.is_class and item.has_parameters else ""
    tried = f" (tried: {problems[0]})" if problems else ""
    return f"no working inputs were found; write above it: # t2j: {init}{shown}{tried}"
