"""The check of one file as a session with the workers: its settings, its two programs, and how they are asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.recall import Recall
from t2j_lsp.check.process.requests import WorkerRequests
from t2j_lsp.check.process.worker import Kind, RemoteError
from t2j_lsp.check.program.marks import Mark, marks_of
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.verdict.refusals import refusal, refused

from .inputs import converted_code


@dataclass(frozen=True)
class CheckSettings:
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


@dataclass
class CheckSession:
    """Two programs and the workers that run them."""

    pool: Pool
    torch_side: Slicer
    jax_side: Slicer
    settings: CheckSettings
    cancelled: Callable[[], bool]
    recall: Recall | None = None
    expression: Callable[[str], str] | None = None
    """Converts an expression of the PyTorch file: see `inputs.Code`."""
    limit: float = 0.0
    """Seconds for each request."""
    refused: dict[Kind, dict[str, None]] = field(init=False)
    """What was refused to either side in the runs of the present object."""
    marks: dict[Kind, set[Mark]] = field(init=False)
    """What ran on each side for the object that is checked."""
    requests: WorkerRequests = field(init=False)

    def __post_init__(self) -> None:
        self.limit = self.limit or self.settings.timeout
        self.requests = WorkerRequests(self.ask)
        self.begin()

    def begin(self) -> None:
        """Forgets what was met with the object before."""
        self.refused = {"torch": {}, "jax": {}}
        self.marks = {"torch": set(), "jax": set()}

    def ask(self, kind: Kind, operation: str, **message: Any) -> Any:
        """A worker's plain answer. Raises WorkerError, and RemoteError for what the program raised."""

        if kind == "jax" and self.expression is not None:
            message = converted_code(message, self.expression)

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
            self.marks[kind] |= marks_of(answer["ran"])
        return answer

    def torch_failed(self, what: str, error: RemoteError) -> str:
        """Why there is no verdict where the PyTorch program raised."""
        met = [*self.refused["torch"], *self.pool.refused["torch"]]
        if met or refused(error.failure):
            return refusal("torch", met[0] if met else str(error))
        where = "" if self.pool.device_name == "cpu" else " on the GPU (with `--device cpu` it is checked on the CPU)"
        return f"the PyTorch code {what}{where}: {error}"
