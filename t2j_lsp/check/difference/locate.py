"""Finds the lines of a difference in both files, once the verdict is `different`."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from t2j_lsp.check.inputs import Arguments
from t2j_lsp.check.messages import DrawProblem, Failure, Frame, HalfCast, Observations, Tape
from t2j_lsp.check.process.requests import WorkerRequests
from t2j_lsp.check.process.worker import RemoteError, WorkerError
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.protocol import Raised
from t2j_lsp.check.requests import JaxRequest, JaxTraceRequest, TorchRequest, TorchTraceRequest
from t2j_lsp.check.verdict.evidence import Judgement
from t2j_lsp.check.verdict.generation import call_of
from t2j_lsp.check.verdict.stages import mode_of
from t2j_lsp.contract import Divergence, Location, SourceMapEntry, VerdictKind

from .localise import Alignment, Places, find
from .statement_lines import assignment, twin
from .trace import MAX_BYTES

SMALL = 500_000
"""Elements of a state up to which a module is constructed once more, to look at the values in its constructor."""


@dataclass(frozen=True)
class ShownRun:
    """A run that shows a difference: in which mode and precision, of what inputs and with which draws."""

    mode: str
    wide: bool
    gradients: bool
    construct: bool
    inputs: Arguments
    tapes: dict[str, Tape]

    def of_torch(self, request: TorchRequest, limit: int | None = None) -> TorchTraceRequest:
        """Torch's, with its values recorded up to so many bytes."""
        own = {"mode": self.mode, "gradients": self.gradients, "construct": self.construct, "bytes": limit}
        return request.as_a(TorchTraceRequest, wide=self.wide, inputs=self.inputs, **own)

    def of_jax(self, request: JaxRequest, limit: int | None = None) -> JaxTraceRequest:
        """The conversion's."""
        own = {"mode": self.mode, "gradients": self.gradients, "construct": self.construct, "bytes": limit}
        return request.as_a(JaxTraceRequest, wide=self.wide, inputs=self.inputs, tapes=self.tapes, **own)


class Locator:
    """The two files of a check, and the workers for running an object once more."""

    def __init__(
        self, torch: Slicer, jax: Slicer, source_map: Sequence[SourceMapEntry], requests: WorkerRequests
    ) -> None:
        self.torch_side = torch
        self.jax_side = jax
        self.source_map = source_map
        self.requests = requests

    def locate(
        self, judgement: Judgement, torch: TorchRequest, jax: JaxRequest, observed: Observations
    ) -> Alignment | None:
        """Adds the place to a verdict. ``torch`` and ``jax`` are requests to run the object once more.

        Answers the runs side by side, where there were any.
        """
        verdict = judgement.verdict
        if verdict.verdict is not VerdictKind.DIFFERENT:
            return None
        alignment = None
        places = self._raised(judgement, observed) or self._misfit(judgement, torch)
        if places is None:
            alignment, places = self._parted(judgement, torch, jax)
        verdict.divergence = Divergence(*places, verdict.reason or "")
        return alignment

    def aligned(
        self, judgement: Judgement, torch: TorchRequest, jax: JaxRequest, limit: int = MAX_BYTES
    ) -> Alignment | None:
        """The values of one run of both sides, chosen by what differs; None where a side can't be run.

        ``limit`` is the number of bytes from each side, about.
        """
        name = judgement.difference.name if judgement.difference else ""
        shown = self.shown(judgement, jax)
        with contextlib.suppress(WorkerError, RemoteError):
            torch_run = self.requests.trace(shown.of_torch(torch, limit))
            jax_run = self.requests.trace(shown.of_jax(jax, limit))
            texts = (self.torch_side.text, self.jax_side.text)
            return Alignment(torch_run, jax_run, is_wide(name), texts, (torch.slice.name, jax.slice.name))
        return None

    @staticmethod
    def shown(judgement: Judgement, jax: JaxRequest) -> ShownRun:
        """A run that shows a difference."""
        name = judgement.difference.name if judgement.difference else ""
        elements = sum(getattr(a, "size", 0) for a in (jax.state or {}).values())
        construct = elements < SMALL or name.startswith("initial values")
        variant = name.removeprefix("in float32, ")
        inputs = next((v for k, v in jax.variants.items() if variant.startswith(k)), jax.inputs)
        call = call_of(getattr(judgement.error, "call", "") or name, jax.generate)
        if call is not None:
            tapes = {"generate": call.tape}
            return ShownRun("generate", is_wide(name), "gradient" in name, construct, call.inputs, tapes)
        mode = "train" if "train" in jax.tapes and (not name or mode_of(name) == "train") else "eval"
        return ShownRun(mode, is_wide(name), "gradient" in name, construct, inputs, jax.tapes)

    def loading(self, frames: Sequence[Frame]) -> Places:
        """Where the converted file fails to load."""
        place = self.place(frames)
        return self._beside(place), place

    def _parted(self, judgement: Judgement, torch: TorchRequest, jax: JaxRequest) -> tuple[Alignment | None, Places]:
        """Where values or gradients part, or else where an error was raised."""
        error = judgement.error
        place = self.place(error.frames) if error else None
        places: Places = (self._beside(place), place)
        if isinstance(error, DrawProblem | HalfCast):
            return None, places
        alignment = self.aligned(judgement, torch, jax)
        if alignment is None:
            return None, places
        if judgement.difference is not None:
            return alignment, find(judgement.difference.name, alignment) or places
        if error is not None:
            torch_line = alignment.torch_line(place) if place is not None and places[0] is None else places[0]
            moved = alignment.moved(place) if place is not None else None
            places = alignment.first_value() or moved or (torch_line, place)
        return alignment, places

    def _raised(self, judgement: Judgement, observed: Observations) -> Places | None:
        """The line that raises in torch on inputs that are to raise, and what became of it."""
        difference = judgement.difference
        raised = observed.get(difference.name) if difference is not None else None
        if not isinstance(raised, Raised) or not raised.line:
            return None
        line = twin(self.torch_side.text, raised.line, self.jax_side.text)
        place = None if line is None else Location(str(self.jax_side.path), line)
        return Location(raised.file, raised.line), place

    def _misfit(self, judgement: Judgement, torch: TorchRequest) -> Places | None:
        """The constructor's lines that make what torch's state does not fit."""
        error = judgement.error
        if not isinstance(error, Failure) or error.type != "WeightsError":
            return None
        names = re.findall(r"^    ([\w.]+)", error.message, re.MULTILINE)
        if not names:
            return None
        with contextlib.suppress(WorkerError, RemoteError):
            owners = self.requests.owners(replace(torch, wide=False))
            owner, attribute = _owner(owners, names[0])
            return (
                _line(self.torch_side, owner, attribute),
                _line(self.jax_side, owner, attribute),
            )
        return None

    def place(self, frames: Sequence[Frame]) -> Location | None:
        """The innermost line of the converted file that an error went through, outside helpers if there is one."""
        path = str(self.jax_side.path)
        lines = [line for file, line, _ in frames if file == path]
        known = _definitions(self.torch_side.scope.body)
        spans = [(n, s.lineno, s.end_lineno or s.lineno) for n, s in _definitions(self.jax_side.scope.body).items()]
        own = [n for n in lines if not any(a <= n <= b and name not in known for name, a, b in spans)]
        return Location(path, (own or lines)[-1]) if lines else None

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


def is_wide(name: str) -> bool:
    """Whether an observation of that name was made in float64."""
    return not name.startswith("in float32")


def _definitions(body: Sequence[ast.stmt]) -> dict[str, ast.stmt]:
    return {s.name: s for s in body if isinstance(s, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}


def _owner(owners: dict[str, list[str]], parameter: str) -> tuple[str, str]:
    """The user's class that a parameter belongs to, and the attribute of it that holds the parameter."""
    name = parameter
    while name not in owners and name:
        name = name.rpartition(".")[0]
    if name in owners:
        return owners[name][0], owners[name][1]
    return "", parameter.partition(".")[0]


def _line(side: Slicer, owner: str, attribute: str) -> Location | None:
    line = assignment(side.text, f"self.{attribute}", owner)
    return None if line is None else Location(str(side.path), line)
