"""Runs a converted program eagerly with every statement's value, and the gradients of it, recorded."""

from __future__ import annotations

import functools
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from t2j_lsp.check.difference.trace import GRADIENT_SECONDS, MAX_BYTES, MAX_EVENTS, NAME, Tracer
from t2j_lsp.check.messages import Failure, Traced, TraceEvent
from t2j_lsp.check.protocol import plain
from t2j_lsp.check.requests import JaxTraceRequest
from t2j_lsp.check.workers.serve import failure
from t2j_lsp.weights.stacks import whole_of

from . import random as jax_random
from .build import program, to_array
from .generate import called
from .pairing import names_of
from .session import ProgramSession, trained

_CHANNELS_LAST = (nnx.Conv, nnx.ConvTranspose, nnx.BatchNorm, nnx.GroupNorm)
_CHUNK = 20_000_000
"""Elements of gradients that are computed at once."""


@dataclass
class Event:
    """A reported value, or while gradients are followed the weighted sum of the floats in it that torch's side has."""

    site: int
    value: Any
    total: Any


class Recorder:
    """The values that statements reported, in order."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.full = False
        """Whether something was left out because there was too much."""
        self.events: list[Event] = []
        self.bytes = 0
        self.on = False
        self.sums = False
        self.compiled = False
        """Whether values were left out because they were inside a function that JAX traces once."""

    def __call__(self, site: int, value: Any) -> Any:
        if not self.on:
            return value
        if len(self.events) >= MAX_EVENTS or self.bytes >= self.limit:
            self.full = True
            return value
        if _compiled(value):
            self.compiled = True
            return value
        sums: list[Any] = []

        def leaf(item: Any) -> Any:
            if self.sums:
                if _is_float(item):
                    fixed = jax.lax.stop_gradient(item)
                    sums.append(jnp.real(item * jnp.conj(1 + fixed + fixed * fixed)).sum())
                return None
            array = to_array(item)
            if array is not None:
                self.bytes += getattr(item, "nbytes", 0)
            return array

        recorded = plain(list(value) if isinstance(value, range) else value, leaf)
        self.events.append(Event(site, recorded, sum(sums) if sums else None))
        return value


def _is_float(item: Any) -> bool:
    return isinstance(item, jax.Array) and jnp.issubdtype(item.dtype, jnp.inexact) and item.size > 0


def _compiled(value: Any) -> bool:
    """Whether a value is inside a function that JAX traces once: it has no value to record."""
    return any(type(leaf).__name__ == "DynamicJaxprTracer" for leaf in jax.tree.leaves(value))


def trace(request: JaxTraceRequest) -> Traced:
    """One call in ``mode`` with everything recorded, as on the torch side; ``error`` if it raised.

    Functions that the program compiles itself have no values to record: then it is called once more without compiling.
    """
    traced, compiled = _trace(request)
    if compiled and any(re.search(r"\bjit\b|\bnnx\.scan\b", m.text) for m in request.slice.modules):
        with jax.disable_jit():
            again, _ = _trace(request)
        if again.error is None or traced.error is not None:
            return again
    return traced


def _trace(request: JaxTraceRequest) -> tuple[Traced, bool]:
    """The trace, and whether there were values that could not be recorded."""
    tracer, recorder = Tracer(), Recorder(request.bytes or MAX_BYTES)
    with program(request, tracer, {NAME: recorder}) as (module, target):
        session = ProgramSession(request, vars(module), target)
        files = {s.file for s in tracer.sites}
        error: Failure | None = None
        norms: list[Any] = []
        try:
            if request.construct and isinstance(target, type):
                recorder.on = True
                session.create()
            recorder.on = False
            session.construct()
            mode = request.mode
            with jax_random.replaying(request.tapes.get(mode), request.seed), _watched(files, tracer, recorder):
                recorder.on = True
                before = len(recorder.events)
                model = _named(session.fresh(mode == "train"), recorder)
                called(session, model) if mode == "generate" else session.call(model, session.arrays)
                recorder.on = False
                if request.gradients:
                    norms = [None] * before + _norms(session, recorder, mode)
        except Exception as raised:  # noqa: BLE001 - the user's code may raise anything; what came before counts
            error = failure(raised)
        norms += [None] * (len(recorder.events) - len(norms))
        events = [TraceEvent(e.site, e.value, n) for e, n in zip(recorder.events, norms, strict=True)]
        return Traced(tracer.sites, events, recorder.full, error), recorder.compiled


_names: dict[int, str] = {}
"""The submodules of the model that is being called, by identity."""


def _named(model: Any, recorder: Recorder) -> Any:
    _names.clear()
    if isinstance(model, nnx.Module):
        nodes = dict(nnx.iter_graph(model))
        for path, node in nodes.items():
            if isinstance(node, nnx.Module) and path:
                parts = [
                    str(part)
                    for i, part in enumerate(path)
                    if not (part == "layers" and isinstance(nodes.get(path[:i]), nnx.Sequential))
                ]
                _names[id(node)] = ".".join(parts)
    return model


@contextmanager
def _watched(files: set[str], tracer: Tracer, recorder: Recorder) -> Iterator[None]:
    """Reports the inputs and outputs of submodules, with the innermost line of the user's that calls each."""
    changed: list[tuple[type, Callable[..., Any]]] = []

    def watch(cls: type) -> None:
        call = cls.__dict__.get("__call__")
        if call is None or any(c is cls for c, _ in changed):
            return
        changed.append((cls, call))

        @functools.wraps(call)
        def called(module: Any, *args: Any, **kwargs: Any) -> Any:
            name = _names.get(id(module))
            place = _place(files) if name is not None and type(module) is _outer(module, call) else None
            if place is None:
                return call(module, *args, **kwargs)
            kind = "channels last" if isinstance(module, _CHANNELS_LAST) else ""
            recorder(tracer.module(*place, str(name), "in", kind), args)
            output = call(module, *args, **kwargs)
            recorder(tracer.module(*place, str(name), "out"), output)
            return output

        setattr(cls, "__call__", called)  # noqa: B010 - mypy knows no such attribute

    for cls in _all_subclasses(nnx.Module):
        watch(cls)
    try:
        yield
    finally:
        for cls, call in changed:
            setattr(cls, "__call__", call)  # noqa: B010


def _all_subclasses(cls: type) -> list[type]:
    subclasses: list[type] = []
    todo = [cls]
    while todo:
        subclass: type
        for subclass in type.__subclasses__(todo.pop()):
            if subclass not in subclasses:
                subclasses.append(subclass)
                todo.append(subclass)
    return subclasses


def _outer(module: Any, call: Callable[..., Any]) -> type:
    """The module's class, if this is the call that its class has: not that of a base which it passes on to."""
    own = next((c.__dict__["__call__"] for c in type(module).__mro__ if "__call__" in c.__dict__), None)
    return type(module) if getattr(own, "__wrapped__", own) is call else object


def _place(files: set[str]) -> tuple[str, int] | None:
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename not in files:
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _norms(session: ProgramSession, recorder: Recorder, mode: str) -> list[dict[str, float] | None]:
    """For each event of a call, the norms of the gradients of its sum, as on the torch side."""
    model = session.fresh(mode == "train")
    entries = names_of(model) if isinstance(model, nnx.Module) else {}
    wanted = {id(v): v for e in entries.values() for v in e.variables if trained((), whole_of(v))}
    slots = {i: slot for i, slot in enumerate(session.slots) if jnp.issubdtype(session.arrays[i].dtype, jnp.inexact)}
    kept, recorder.events = recorder.events, []
    present: list[bool] = []

    def sums(parameters: list[Any], floats: list[Any]) -> Any:
        recorder.events.clear()
        arrays = list(session.arrays)
        for i, array in zip(slots, floats, strict=True):
            arrays[i] = array
        fresh = _named(session.fresh(mode == "train"), recorder)
        if wanted:
            held = names_of(fresh)
            own = {id(v): v for e in held.values() for v in e.variables if trained((), whole_of(v))}
            for variable, array in zip(own.values(), parameters, strict=True):
                variable.set_value(array)
        recorder.on = recorder.sums = True
        session.call(fresh, arrays)
        recorder.on = recorder.sums = False
        present[:] = [e.total is not None for e in recorder.events]
        return jnp.stack([jnp.asarray(e.total, jnp.float64) for e in recorder.events if e.total is not None])

    parameters = [v.get_value() for v in wanted.values()]
    _, pull = jax.vjp(sums, parameters, [session.arrays[i] for i in slots])
    recorder.events = kept
    count = sum(present)
    rows = _rows(pull, count, parameters)
    collected: list[dict[str, float] | None] = []
    order = {key: i for i, key in enumerate(wanted)}
    for has in present:
        row = next(rows, None) if has else None
        if row is None:
            collected.append(None)
            continue
        of_parameters, of_inputs = row
        norms = {f"input {slot}": float(n) for slot, n in zip(slots.values(), of_inputs, strict=True)}
        for name, entry in entries.items():
            parts = [of_parameters[order[id(v)]] for v in entry.variables if id(v) in order]
            if parts:
                norms[name] = float(np.sqrt(sum(p**2 for p in parts)))
        collected.append(norms)
    return collected


def _rows(pull: Callable[..., Any], count: int, parameters: list[Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """The norms of the gradients of each total, until the time is up."""
    step = max(1, _CHUNK // max(1, sum(p.size for p in parameters)))
    unit = np.eye(count)
    deadline = time.monotonic() + GRADIENT_SECONDS
    for start in range(0, count, step):
        if time.monotonic() > deadline:
            return
        grads = jax.vmap(pull)(jnp.asarray(unit[start : start + step]))
        norms = [
            [np.sqrt(np.sum(np.abs(np.asarray(g, np.complex128)) ** 2, axis=tuple(range(1, g.ndim)))) for g in part]
            for part in grads
        ]
        for row in range(min(step, count - start)):
            yield [n[row] for n in norms[0]], [n[row] for n in norms[1]]
