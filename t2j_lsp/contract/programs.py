"""The verdict of ``t2j run`` on a whole program."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from .differences import Divergence
from .translation import JSON_VERSION
from .verdicts import Containment, VerdictKind

Precision = Literal["float32", "float64"]
RUN_KINDS = ("printed", "collected", "saved", "parameters")
"""What is compared: texts, lists of numbers at the top level, files, and the last values of modules."""


@dataclass
class ProgramValues:
    """What was compared of one kind: how many of it, with how many numbers, and the largest relative difference.

    ``tolerance`` is the largest that a difference was held against; ``chaotic`` counts the numbers that PyTorch itself
    does not settle, which are left out.
    """

    count: int = 0
    numbers: int = 0
    max_rel_err: float = 0.0
    tolerance: float = 0.0
    chaotic: int = 0


@dataclass
class SideTimes:
    """Seconds of one side: of the program without imports of the frameworks, and from step to step in the middle."""

    seconds: float
    step_seconds: float | None = None


@dataclass
class ProgramReport:
    """The result of ``t2j run``: one verdict on both programs."""

    verdict: VerdictKind
    reason: str | None = None
    device: str = "cpu"
    precision: Precision = "float32"
    """That in which the verdict was found."""
    steps: int = 0
    """Optimizer steps of the PyTorch program."""
    stopped: bool = False
    """Whether both were stopped before their ends."""
    failed: str | None = None
    """What the PyTorch program raised, and where."""
    values: dict[str, ProgramValues] = field(default_factory=dict)
    divergence: Divergence | None = None
    times: dict[str, SideTimes] = field(default_factory=dict)
    """By side, ``torch`` and ``jax``, in the precision of the program."""
    gaps: tuple[int, ...] = ()
    """Lines of the PyTorch file that were not converted: then nothing was run. In a notebook, lines in their cells."""
    synthetic: tuple[str, ...] = ()
    """What of the data was made up or left out, where that was asked for."""
    notes: list[str] = field(default_factory=list)
    containment: Containment | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "version": JSON_VERSION,
            "verdict": str(self.verdict),
            "reason": self.reason,
            "device": self.device,
            "precision": self.precision,
            "steps": self.steps,
            "stopped": self.stopped,
            "failed": self.failed,
            "values": {kind: asdict(one) for kind, one in self.values.items()},
            "divergence": self.divergence.to_json() if self.divergence else None,
            "times": {side: asdict(one) for side, one in self.times.items()},
            "gaps": list(self.gaps),
            "synthetic": list(self.synthetic),
            "notes": self.notes,
            **({"containment": self.containment.to_json()} if self.containment else {}),
        }
