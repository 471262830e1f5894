"""What workers answer, as values with names: built by the worker, sent as plain data, read by the checker.

Observations themselves stay what they are, trees of arrays by the name of the observation (`protocol.plain`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from .crossing import Message
from .inputs import Arguments, InputPlan
from .program.marks import Mark
from .protocol import Array, NdArray, Plain

Tree = Plain
"""A tree of arrays and plain values, as `protocol.plain` makes it."""
Observations = dict[str, Tree]
"""Trees by the name of the observation: ``eval output``, ``gradient of parameter: fc.weight``, ``step 2: loss``."""
Observed = Mapping[str, Tree]
"""The same, to be read."""
State = dict[str, Array]
"""Arrays by the names of torch's state dict."""
DrawKind = Literal["kind", "shape", "probability", "parameter", "reuse"]
Frame = tuple[str, int, str]
"""A place that an error went through: file, line, function."""


@dataclass(frozen=True)
class Failure(Message):
    """What a program raised."""

    type: str
    bases: list[str]
    """The names of the classes that its class is made of, itself first."""
    message: str
    frames: list[Frame]
    """Outermost first."""
    call: str = ""
    """The call of ``generate`` that raised it; empty for another."""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True)
class Greeting(Message):
    """What a worker says of itself before it is asked for anything else."""

    framework: str
    """With its version."""
    device: str
    """What it runs on, by its name."""
    missing: str | None
    """Why it has no card where it was to use one."""
    layers: list[str]
    """What shuts it in."""


@dataclass(frozen=True)
class Owners(Message):
    """Which attribute of which class of the user's holds each submodule, parameter and buffer of a torch module."""

    owners: dict[str, list[str]]


@dataclass(frozen=True)
class DrawProblem(Message):
    """A random draw of the JAX side that is not one of torch's."""

    kind: DrawKind
    """``reuse``: one key for two draws, which are not independent."""
    text: str
    frames: list[Frame] = field(default_factory=list)
    call: str = ""


@dataclass(frozen=True)
class HalfCast(Message):
    """A cast to half precision that the JAX side made."""

    dtype: str
    frames: list[Frame]


Trouble = Failure | DrawProblem | HalfCast
"""What, besides a difference of values, makes a conversion differ, with the frames of its place."""


@dataclass(frozen=True)
class RecordedDraw(Message):
    """Random numbers that torch drew, ``p`` being what they were drawn with."""

    kind: str
    values: NdArray
    p: Tree = None


Tape = list[RecordedDraw]
"""Random draws in their order."""


@dataclass(frozen=True)
class GenerateCall(Message):
    """A call of ``generate``: its arguments, and torch's draws in it."""

    inputs: Arguments
    tape: Tape


@dataclass
class TorchGenerated(Message):
    """What torch's ``generate`` returned, by the name of the call."""

    observed: Observations = field(default_factory=dict)
    calls: dict[str, GenerateCall] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    """Why something was not called, or is not to be compared."""


@dataclass
class JaxGenerated(Message):
    """What the conversion's ``generate`` returned for each of torch's calls."""

    observed: Observations = field(default_factory=dict)
    draws: dict[str, list[DrawProblem]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    error: Failure | None = None


@dataclass
class TorchObserved(Message):
    """What torch computed for one set of arguments."""

    state: State
    parameters: dict[str, bool]
    """Tied ones under each of their names; whether they are trained."""
    observed: Observations
    cotangents: dict[str, Array]
    elements: int
    """Elements of the largest input."""
    tapes: dict[str, Tape]
    """Random draws, by mode."""
    halves: bool
    """Whether the program may compute in half precision."""
    uncontrolled: dict[str, bool]
    """By mode, whether there is randomness that the tape doesn't hold."""
    varies: bool
    """Whether other draws give other outputs."""
    on_host: bool = False
    """Whether outputs hold Python numbers or NumPy arrays."""
    generate: TorchGenerated | None = None
    left_out: list[str] = field(default_factory=list)
    ran: list[Mark] = field(default_factory=list)


@dataclass
class JaxObserved(Message):
    """What JAX computed with torch's state, inputs and draws, phase by phase: ``eval``, ``train under jit``, ..."""

    observed: dict[str, Observations]
    errors: dict[str, Failure]
    draws: dict[str, list[DrawProblem]]
    seconds: dict[str, float]
    halves: list[HalfCast]
    first: float
    """Seconds of the first call under ``jit``, with its compilation."""
    paired: bool
    """Whether the user said which parameter is which."""
    paired_by_order: bool
    """Whether parameters were paired by nothing but their order."""
    x64: bool
    frozen_draws: bool = False
    """Whether every call under ``jit`` draws the same random numbers."""
    generate: JaxGenerated | None = None
    left_out: list[str] = field(default_factory=list)
    ran: list[Mark] = field(default_factory=list)


@dataclass
class Prepared(Message):
    """Arguments with which a torch object runs; or ``problems``, what was tried without success."""

    init: Arguments = field(default_factory=Arguments)
    inputs: Arguments = field(default_factory=Arguments)
    variants: dict[str, Arguments] = field(default_factory=dict)
    """Other inputs by the name of their observation."""
    shown: str = ""
    source: str = ""
    """Where the arguments come from."""
    parts: dict[str, list[InputPlan]] = field(default_factory=dict)
    """How the run built and called other classes."""
    smaller: str | None = None
    """Which inputs became smaller, from what to what."""
    problems: list[str] | None = None


@dataclass
class TrainingReference(Message):
    """What torch says of a training with a file's own optimizer, for JAX to repeat it."""

    inputs: Arguments
    tapes: dict[str, Tape]
    """Random draws, by mode: of these inputs, which need not be those of the other stages."""
    target: Array | None
    """The loss's target; None where the loss is the distance from the cotangents."""
    noise: dict[str, NdArray]
    """Elements of parameters whose gradient is only rounding."""
    uniform: bool
    """Whether there is one learning rate for all."""
    metric: bool
    """Whether the schedule is told the loss."""
    cycled: bool
    """Whether the schedule changes the momentum."""
    clipped: bool
    """Whether gradients were clipped: those of `PULLS` times the loss."""
    counts: int
    """Further learning rates of the schedule that were looked at."""
    followed: str
    """The parameter that is followed as the optimizer goes on,"""
    course: int
    """and for so many updates."""
    classes: dict[str, str]
    """The class of the optimizer and of the schedule that were made."""
    command_line: list[str]
    each_update: bool = False
    """Whether torch's schedule goes on with every update."""


@dataclass
class TorchTrained(Message):
    """A training with a file's own optimizer on the torch side; or ``problem``, why there is none."""

    observed: Observations = field(default_factory=dict)
    reference: TrainingReference | None = None
    problem: str | None = None
    ran: list[Mark] = field(default_factory=list)


@dataclass
class JaxTrained(Message):
    """The same training on the JAX side, or what it raised; or ``problem``, why it can't be repeated."""

    observed: Observations = field(default_factory=dict)
    error: Failure | None = None
    problem: str | None = None
    loss: bool = False
    """Whether the problem is that of the loss."""
    ran: list[Mark] = field(default_factory=list)


@dataclass(frozen=True)
class StatementSite:
    """A statement: its place, the function it is in, what it assigns (or ``return``), and the names it reads."""

    file: str
    line: int
    function: str
    target: str
    reads: tuple[str, ...]

    def to_plain(self) -> list[Plain]:
        return [self.file, self.line, self.function, self.target, list(self.reads)]

    @staticmethod
    def from_plain(data: tuple[str, int, str, str, list[str]]) -> StatementSite:
        file, line, function, target, reads = data
        return StatementSite(file, line, function, target, tuple(reads))

    @property
    def key(self) -> tuple[str, str]:
        """What the same statement has in common on both sides."""
        return self.function.replace(".forward", ".__call__"), self.target.removesuffix("[...]")


@dataclass(frozen=True)
class TraceEvent(Message):
    """What one statement reported: its number among the sites, the value, and norms of gradients (`TracedEvent`)."""

    site: int
    value: Tree
    norms: dict[str, float] | None


@dataclass
class Traced(Message):
    """One run with everything recorded."""

    sites: list[StatementSite]
    """The statements that reported."""
    events: list[TraceEvent]
    """In order."""
    full: bool
    """Whether something was left out because there was too much."""
    error: Failure | None = None
    calls: dict[str, tuple[str, int]] = field(default_factory=dict)
    """On the torch side, from which file and line each submodule was called."""
    owners: dict[str, list[str]] = field(default_factory=dict)
    """On the torch side, which attribute of which class of the user's holds each submodule, parameter and buffer."""


@dataclass
class InitialValues(Message):
    """Samples of how a module starts, by name."""

    values: dict[str, NdArray]
    count: int = 0
    """The number of samples that the other side is to draw."""
    seeded: bool = False
    """Whether the constructor seeds the generator itself, so that all samples are the same draws."""


@dataclass
class CallTimes(Message):
    """Seconds of calls: ``first`` and ``median``."""

    seconds: dict[str, float]
    state: State = field(default_factory=dict)


@dataclass
class Printed(Message):
    """A text that a program put out, and the line that did."""

    text: str
    file: str = ""
    line: int = 0


@dataclass
class Logged(Message):
    """What a program logged under one name: steps and numbers one after the other, and the line that was the first."""

    file: str = ""
    line: int = 0
    steps: list[Tree] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """How many numbers belong to each step."""
    values: list[float] = field(default_factory=list)


@dataclass
class MadeModule(Message):
    """A module that a program made by itself, not as a part of another, with its parameters and buffers."""

    type: str
    line: int
    name: str
    """The name that it was given, or its class's."""
    state: State
    parameters: list[str] = field(default_factory=list)
    """Which of the names are parameters, and no buffers."""


@dataclass
class ProgramRun(Message):
    """A whole program that was run."""

    printed: list[Printed] = field(default_factory=list)
    failure: Failure | None = None
    line: int = 0
    """The program's own line that an error went through last."""
    calls: list[int] = field(default_factory=list)
    """The lines of the program that the error went through before, from the inside out."""
    exit_code: int = 0
    stopped: bool = False
    """Whether it was stopped before its end, after the optimizer steps that it was to make."""
    steps: int = 0
    seconds: float = 0.0
    step_seconds: float | None = None
    """The median time from one optimizer step to the next."""
    made: list[MadeModule] = field(default_factory=list)
    """The modules with their first values."""
    final: dict[str, MadeModule] = field(default_factory=dict)
    """By the place of the module among torch's: with its last values."""
    collected: dict[str, list[float]] = field(default_factory=dict)
    """Lists of numbers at the program's top level."""
    saved: dict[str, Tree] = field(default_factory=dict)
    """Arrays and texts by the name of the file that the program wrote."""
    logged: dict[str, Logged] = field(default_factory=dict)
    """What it logged to TensorBoard."""
    problems: list[str] = field(default_factory=list)
    stood_in: list[str] = field(default_factory=list)
    """What of its data was made up or left out."""
    draws: dict[str, int] = field(default_factory=dict)
    """How many draws it made outside of constructors, by their kind and shape."""
    ran: list[Mark] = field(default_factory=list)
