"""What workers are asked, as values with names: built by the checker. `messages` has the answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from t2j_lsp.contract import ChannelsLast

from .arguments.recipe import Recipe
from .crossing import Message
from .inputs import Arguments, InputPlan
from .messages import GenerateCall, MadeModule, State, Tape, TrainingReference
from .program.slice import Slice
from .protocol import Array


@dataclass(frozen=True)
class EmptyRequest(Message):
    """An operation that needs to be told nothing."""


@dataclass(frozen=True)
class MemoryRequest(Message):
    """The memory of the card; ``hold`` is a share of what the framework may have, to be kept from now on."""

    hold: float | None = None


@dataclass(frozen=True, kw_only=True)
class SliceRequest(Message):
    """Code to load, in float64 where ``wide``, else in the user's precision."""

    slice: Slice
    wide: bool = False
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class TestsRequest(SliceRequest):
    """Unit tests to run, several times with seeds of their own."""

    repeat: int = 1


@dataclass(frozen=True, kw_only=True)
class ValuesRequest(SliceRequest):
    """Functions without parameters, whose values are wanted."""

    names: list[str]


@dataclass(frozen=True, kw_only=True)
class PrepareRequest(SliceRequest):
    """A torch object whose arguments are to be found, by one of these plans and within so many seconds.

    ``small``: whether inputs are to be made smaller even where the program does not take long, sizes in constructors
    small, and repeated blocks fewer. ``light``: before anything runs, and with nothing as it is.
    """

    plans: list[InputPlan]
    seconds: float
    small: bool = False
    light: bool = False


@dataclass(frozen=True)
class ParameterPairing(Message):
    """How the counterpart of a torch object holds its state, as `counterparts.Counterpart` says."""

    takes_parameters: bool = False
    init: list[str] = field(default_factory=list)
    weights: dict[str, str] = field(default_factory=dict)
    renamed: bool = False
    written: bool = False
    arguments: list[str] = field(default_factory=list)
    """The names of the torch constructor's parameters."""
    layout: ChannelsLast | None = None


@dataclass(frozen=True, kw_only=True)
class InitialRequest(SliceRequest):
    """A torch module to be constructed several times."""

    init: Arguments


@dataclass(frozen=True, kw_only=True)
class JaxInitialRequest(InitialRequest):
    """Its conversion, to be constructed ``count`` times."""

    pairing: ParameterPairing
    count: int


@dataclass(frozen=True, kw_only=True)
class CallRequest(InitialRequest):
    """An object that is built and called with drawn inputs.

    ``variants`` are other inputs by the name of their observation; ``state`` and ``cotangents`` are an earlier run's,
    ``generate`` the calls of this method to make: none are to be found out, and None asks for nothing. What repeats
    the rest is left out where it is not done within ``seconds``.
    """

    inputs: Arguments
    variants: dict[str, Arguments] = field(default_factory=dict)
    state: State | None = None
    cotangents: dict[str, Array] | None = None
    steps: int = 0
    """Optimizer steps to make."""
    generate: dict[str, GenerateCall] | None = None
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class TorchRequest(CallRequest):
    """A torch object to be observed."""

    rounding: int | None = None
    """The seed with which results are rounded otherwise."""


@dataclass(frozen=True, kw_only=True)
class JaxRequest(CallRequest):
    """Its conversion, with torch's state, cotangents and draws."""

    pairing: ParameterPairing
    tapes: dict[str, Tape] = field(default_factory=dict)
    varies: bool = False
    """Whether torch gives other outputs with other draws."""
    eager: bool = False
    """Whether it runs without ``jit`` too."""
    gradients: bool = False
    careful: bool = False
    """Whether XLA is to compile so that a difference is none of its own;"""
    nan: bool = False
    """and so that NaN among gradients stays, where there was any."""
    eager_mode: str | None = None
    """A mode, ``eval`` or ``train``, in which it is to run without ``jit``, and nothing else."""


@dataclass(frozen=True, kw_only=True)
class TorchTraceRequest(TorchRequest):
    """A torch object to be run once with everything recorded.

    In the mode ``generate`` it is a call of this method, with ``inputs`` that are its own.
    """

    mode: str
    construct: bool
    """Whether the constructor is recorded too."""
    gradients: bool
    """Whether norms of gradients are wanted."""
    bytes: int | None = None
    """Of arrays that are recorded, about."""


@dataclass(frozen=True, kw_only=True)
class JaxTraceRequest(JaxRequest):
    """Its conversion, likewise."""

    mode: str
    construct: bool
    bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class TorchTrainRequest(TorchRequest):
    """A torch module to be trained by a recipe of its own file."""

    recipe: Recipe


@dataclass(frozen=True, kw_only=True)
class JaxTrainRequest(JaxRequest):
    """Its conversion, to be trained by its file's; ``reference`` is what torch says of its own run."""

    recipe: Recipe
    reference: TrainingReference


@dataclass(frozen=True, kw_only=True)
class ProgramRequest(SliceRequest):
    """A whole program to run, in a copy of its folder, with the command line ``arguments``."""

    folder: str
    arguments: list[str]
    synthetic: bool
    """Whether data that is not here is made up."""
    classes: list[str]
    """The module classes whose draws are counted apart, with ``forward`` their forward pass on this side."""
    forward: str
    underived: list[str]
    """Classes of both programs that derive from nothing in PyTorch's: no modules there."""
    steps: int | None
    """Optimizer steps after which it is stopped,"""
    budget: float | None
    """and seconds after which it is, at the next step."""


@dataclass(frozen=True, kw_only=True)
class TorchProgramRequest(ProgramRequest):
    """PyTorch's; ``moved`` is how far first values are moved, to see what that makes of the rest."""

    moved: float | None = None


@dataclass(frozen=True, kw_only=True)
class JaxProgramRequest(ProgramRequest):
    """The conversion's, whose modules start as torch's did."""

    made: list[MadeModule]
