"""What workers are asked for, with the type of each answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from t2j_lsp.check.messages import (
    CallTimes,
    InitialValues,
    JaxObserved,
    JaxTrained,
    Prepared,
    TorchObserved,
    TorchTrained,
    Traced,
)

from .worker import Kind


class WorkerRequests:
    """The operations of both workers. ``ask(kind, operation, **message)`` sends one and gives its plain answer.

    Each method raises what ``ask`` raises: WorkerError, and RemoteError for what the program itself raised.
    """

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask

    def prepare(self, **message: Any) -> Prepared:
        """Arguments with which a torch object runs."""
        return Prepared.from_plain(self._ask("torch", "prepare", **message))

    def observe_torch(self, **message: Any) -> TorchObserved:
        """What a torch object computes."""
        return TorchObserved.from_plain(self._ask("torch", "observe", **message))

    def observe_jax(self, **message: Any) -> JaxObserved:
        """What its conversion computes."""
        return JaxObserved.from_plain(self._ask("jax", "observe", **message))

    def trace(self, kind: Kind, **message: Any) -> Traced:
        """One run with every statement's value."""
        return Traced.from_plain(self._ask(kind, "trace", **message))

    def owners(self, **message: Any) -> dict[str, list[str]]:
        """Which attribute of which class of the user's holds each submodule, parameter and buffer of a torch module."""
        owned: dict[str, list[str]] = self._ask("torch", "owners", **message)["owners"]
        return owned

    def initial(self, kind: Kind, **message: Any) -> InitialValues:
        """Samples of initial values."""
        return InitialValues.from_plain(self._ask(kind, "initial", **message))

    def train_torch(self, **message: Any) -> TorchTrained:
        """A training with the file's own optimizer."""
        return TorchTrained.from_plain(self._ask("torch", "train", **message))

    def train_jax(self, **message: Any) -> JaxTrained:
        """The same with the conversion's."""
        return JaxTrained.from_plain(self._ask("jax", "train", **message))

    def clock(self, kind: Kind, **message: Any) -> CallTimes:
        """Seconds of a call."""
        return CallTimes.from_plain(self._ask(kind, "clock", **message))
