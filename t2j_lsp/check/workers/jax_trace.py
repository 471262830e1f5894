"""Runs a converted program eagerly with every statement's value, and its gradient, recorded."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t2j_lsp.check.protocol import plain
from t2j_lsp.check.trace import NAME, Tracer

from . import jax_random
from .jax_build import program, to_array
from .jax_observe import Session, Shape
from .serve import describe

MAX_EVENTS = 4000
MAX_BYTES = 400 * 1024**2


class Recorder:
    """The values that statements reported, in order; or, to find their gradients, zeros to add to them."""

    def __init__(self) -> None:
        self.events: list[tuple[int, Any, list[Any]]] = []
        self.bytes = 0
        self.on = False
        self.zeros: list[list[Any]] | None = None
        self.next = 0

    def __call__(self, site: int, value: Any) -> Any:
        if not self.on or _compiled(value):
            return value
        if self.zeros is not None:
            return self._moved(site, value)
        if len(self.events) < MAX_EVENTS and self.bytes < MAX_BYTES:
            floats: list[Any] = []

            def leaf(item: Any) -> Any:
                array = to_array(item)
                if array is not None:
                    self.bytes += getattr(item, "nbytes", 0)
                if _is_float(item):
                    floats.append(jnp.zeros_like(item))
                return array

            self.events.append((site, plain(value, leaf), floats))
        return value

    def _moved(self, site: int, value: Any) -> Any:
        """The value plus zeros with respect to which the gradient is taken."""
        assert self.zeros is not None
        if self.next >= len(self.zeros) or self.events[self.next][0] != site:
            return value
        zeros = self.zeros[self.next]
        self.next += 1
        floats: list[Any] = []

        def leaf(item: Any) -> Any:
            if _is_float(item):
                floats.append(item)
                return np.zeros(0)
            return None

        plain(value, leaf)
        if len(floats) != len(zeros):
            return value
        moves = {id(item): zero for item, zero in zip(floats, zeros, strict=True)}
        return jax.tree.map(lambda item: item + moves[id(item)] if id(item) in moves else item, value)


def _is_float(item: Any) -> bool:
    return isinstance(item, jax.Array) and jnp.issubdtype(item.dtype, jnp.inexact)


def _compiled(value: Any) -> bool:
    """Whether a value is inside a function that JAX traces once: it has no value to record."""
    return any(type(leaf).__name__ == "DynamicJaxprTracer" for leaf in jax.tree.leaves(value))


def trace(request: dict[str, Any]) -> dict[str, Any]:
    """One call in ``mode`` with everything recorded, as on the torch side; ``error`` if it raised."""
    tracer, recorder = Tracer(), Recorder()
    with program(request, tracer, {NAME: recorder}) as (module, target):
        session = Session(request, vars(module), target)
        session.construct()
        mode = request["mode"]
        error = None
        gradients: list[list[Any]] = []
        with jax_random.replaying(request["tapes"].get(mode), request["seed"]):
            recorder.on = True
            try:
                session.call(session.fresh(mode == "train"), session.arrays)
                if request["gradients"]:
                    gradients = _gradients(session, recorder, mode)
            except Exception as raised:  # noqa: BLE001 - the user's code may raise anything; what came before counts
                error = describe(raised)
            recorder.on = False
        gradients += [[]] * (len(recorder.events) - len(gradients))
        events = [[site, value, g] for (site, value, _), g in zip(recorder.events, gradients, strict=True)]
        return {"sites": [s.to_plain() for s in tracer.sites], "events": events, "error": error}


def _gradients(session: Session, recorder: Recorder, mode: str) -> list[list[Any]]:
    """The gradient of the loss with respect to every recorded value."""

    def loss(zeros: list[list[Any]]) -> Any:
        recorder.zeros, recorder.next = zeros, 0
        shape = Shape()
        return session.loss(shape, shape.take(session.call(session.fresh(mode == "train"), session.arrays)))

    found = jax.grad(loss)([zeros for _, _, zeros in recorder.events])
    recorder.zeros = None
    return [[np.conj(np.asarray(g)) for g in event] for event in found]
