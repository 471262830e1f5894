"""What workers are asked for, with the type of each answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from t2j_lsp.check.crossing import Message
from t2j_lsp.check.messages import (
    CallTimes,
    InitialValues,
    JaxObserved,
    JaxTrained,
    Owners,
    Prepared,
    TorchObserved,
    TorchTrained,
    Traced,
)
from t2j_lsp.check.requests import (
    InitialRequest,
    JaxInitialRequest,
    JaxRequest,
    JaxTraceRequest,
    JaxTrainRequest,
    PrepareRequest,
    TorchRequest,
    TorchTraceRequest,
    TorchTrainRequest,
)

from .worker import Kind


class WorkerRequests:
    """The operations of both workers. ``ask(kind, operation, **message)`` sends one and gives its plain answer.

    Each method raises what ``ask`` raises: WorkerError, and RemoteError for what the program itself raised.
    """

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask

    def prepare(self, request: PrepareRequest) -> Prepared:
        """Arguments with which a torch object runs."""
        return Prepared.from_plain(self._answer("torch", "prepare", request))

    def observe_torch(self, request: TorchRequest) -> TorchObserved:
        """What a torch object computes."""
        return TorchObserved.from_plain(self._answer("torch", "observe", request))

    def observe_jax(self, request: JaxRequest) -> JaxObserved:
        """What its conversion computes."""
        return JaxObserved.from_plain(self._answer("jax", "observe", request))

    def trace(self, request: TorchTraceRequest | JaxTraceRequest) -> Traced:
        """One run with every statement's value."""
        return Traced.from_plain(self._answer(_side(request), "trace", request))

    def owners(self, request: TorchRequest) -> dict[str, list[str]]:
        """Which attribute of which class of the user's holds each submodule, parameter and buffer of a torch module."""
        return Owners.from_plain(self._answer("torch", "owners", request)).owners

    def initial(self, request: InitialRequest) -> InitialValues:
        """Samples of initial values."""
        return InitialValues.from_plain(self._answer(_side(request), "initial", request))

    def train_torch(self, request: TorchTrainRequest) -> TorchTrained:
        """A training with the file's own optimizer."""
        return TorchTrained.from_plain(self._answer("torch", "train", request))

    def train_jax(self, request: JaxTrainRequest) -> JaxTrained:
        """The same with the conversion's."""
        return JaxTrained.from_plain(self._answer("jax", "train", request))

    def clock(self, request: TorchRequest | JaxRequest) -> CallTimes:
        """Seconds of a call."""
        return CallTimes.from_plain(self._answer(_side(request), "clock", request))

    def _answer(self, kind: Kind, operation: str, request: Message) -> Any:
        return self._ask(kind, operation, **request.to_plain())


def _side(request: InitialRequest) -> Kind:
    return "jax" if isinstance(request, JaxRequest | JaxInitialRequest) else "torch"
