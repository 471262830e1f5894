"""Runs a torch program with every statement's value, and the gradients of it, recorded."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from t2j_lsp.check.difference.trace import GRADIENT_SECONDS, MAX_BYTES, MAX_EVENTS, NAME, Tracer
from t2j_lsp.check.messages import Owners, Traced, TraceEvent
from t2j_lsp.check.protocol import Opaque, plain
from t2j_lsp.check.requests import TorchRequest, TorchTraceRequest

from .build import build, give_sizes, program, to_array
from .generate import called
from .runs import Runs, differentiable, set_state


@dataclass
class Event:
    """A reported value, and a sum over the floats in it, weighted by a function of each, with its graph.

    Such a sum is the same in any order of axes.
    """

    site: int
    value: Any
    total: torch.Tensor | None


class Recorder:
    """The values that statements reported, in order."""

    def __init__(self, gradients: bool, limit: int) -> None:
        self.limit = limit
        self.full = False
        """Whether something was left out because there was too much."""
        self.events: list[Event] = []
        self.gradients = gradients
        self.bytes = 0
        self.on = False
        self.generator: torch.Tensor | None = None
        """While a constructor runs, the state of torch's random generator at the last report."""

    def __call__(self, site: int, value: Any) -> Any:
        if not self.on:
            return value
        if len(self.events) >= MAX_EVENTS or self.bytes >= self.limit:
            self.full = True
            return value
        self.on = False
        sums: list[torch.Tensor] = []

        def leaf(item: Any) -> Any:
            array = to_array(item)
            if array is not None:
                self.bytes += item.numel() * item.element_size()
            if self.gradients and differentiable(item) and item.requires_grad and item.numel():
                fixed = item.detach().clone()
                sums.append((item * (1 + fixed + fixed * fixed).conj()).real.sum())
            return array

        recorded = plain(list(value) if isinstance(value, range) else value, leaf)
        self.events.append(Event(site, Opaque("random") if self._drawn() else recorded, _sum(sums)))
        self.on = True
        return value

    def _drawn(self) -> bool:
        """Whether random numbers were drawn since the last report: then JAX has others."""
        if self.generator is None:
            return False
        before, self.generator = self.generator, torch.get_rng_state()
        return not torch.equal(before, self.generator)


def _sum(sums: list[torch.Tensor]) -> torch.Tensor | None:
    return torch.stack([s.double() for s in sums]).sum() if sums else None


def trace(request: TorchTraceRequest) -> Traced:
    """One call with everything recorded."""
    tracer, recorder = Tracer(), Recorder(request.gradients, request.bytes or MAX_BYTES)
    rng = np.random.default_rng(request.seed)
    with program(request, tracer, {NAME: recorder}) as (module, target):
        if request.construct and isinstance(target, type):
            recorder.on, recorder.generator = True, torch.get_rng_state()
        model = build(target, request.init, vars(module), request.wide, rng)
        recorder.on, recorder.generator = False, None
        give_sizes(model, request, vars(module))
        calls: dict[str, tuple[str, int]] = {}
        if isinstance(model, nn.Module):
            set_state(model, request.state, rng, request.wide)
            _watch_calls(model, {s.file for s in tracer.sites}, calls, tracer, recorder)
        runs = Runs(model, vars(module), request, rng)
        recorder.on = True
        roots: dict[str, torch.Tensor] = {}
        if request.mode == "generate":
            called(runs, runs.inputs)
        else:
            _, roots = runs.differentiated(request.mode)
        recorder.on = False
        parameters = dict(model.named_parameters()) if isinstance(model, nn.Module) else {}
        norms = _norms(recorder.events, {**parameters, **roots})
        events = [TraceEvent(e.site, e.value, n) for e, n in zip(recorder.events, norms, strict=True)]
        owners = _owners(model, request) if isinstance(model, nn.Module) else {}
        return Traced(tracer.sites, events, recorder.full, calls=calls, owners=owners)


def owners(request: TorchRequest) -> Owners:
    """``owners`` alone, as `trace` gives them."""
    rng = np.random.default_rng(request.seed)
    with program(request) as (module, target):
        model = build(target, request.init, vars(module), request.wide, rng)
        return Owners(_owners(model, request) if isinstance(model, nn.Module) else {})


def _norms(events: list[Event], roots: dict[str, torch.Tensor]) -> list[dict[str, float] | None]:
    """For each event, the norms of the gradients of its sum with respect to all roots: zero where none arrive."""
    norms: list[dict[str, float] | None] = []
    names = [n for n, root in roots.items() if root.requires_grad]
    deadline = time.monotonic() + GRADIENT_SECONDS
    for event in events:
        if event.total is None or not event.total.requires_grad or time.monotonic() > deadline or not names:
            # No gradient arrives where none is followed, which is an answer too.
            detached = event.total is None or not event.total.requires_grad
            norms.append(dict.fromkeys(names, 0.0) if detached and names else None)
            continue
        grads = torch.autograd.grad(event.total, [roots[n] for n in names], retain_graph=True, allow_unused=True)
        norms.append(
            {n: 0.0 if g is None else float(g.abs().double().norm()) for n, g in zip(names, grads, strict=True)}
        )
    return norms


def _owners(model: nn.Module, request: TorchRequest) -> dict[str, list[str]]:
    own = {m.name for m in request.slice.modules}
    modules = dict(model.named_modules(remove_duplicate=False))
    users = {name for name, m in modules.items() if type(m).__module__ in own}
    owners: dict[str, list[str]] = {}
    names = [*modules, *(n for n, _ in model.named_parameters()), *(n for n, _ in model.named_buffers())]
    for name in names:
        parts = name.split(".")
        for cut in range(len(parts) - 1, -1, -1):
            owner = ".".join(parts[:cut])
            if name and owner in users:
                owners[name] = [type(modules[owner]).__name__, parts[cut]]
                break
    return owners


def _watch_calls(
    model: nn.Module, files: set[str], calls: dict[str, tuple[str, int]], tracer: Tracer, recorder: Recorder
) -> None:
    """Reports the inputs and outputs of each submodule, with the innermost line of the user's that calls it."""
    places: dict[int, tuple[str, int]] = {}

    def before(name: str) -> Callable[..., None]:
        def called(module: nn.Module, args: tuple[Any, ...]) -> None:
            frame = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename not in files:
                frame = frame.f_back  # type: ignore[assignment]
            if frame is not None:
                places[id(module)] = frame.f_code.co_filename, frame.f_lineno
                calls.setdefault(name, places[id(module)])
                recorder(tracer.module(*places[id(module)], name, "in"), args)

        return called

    def after(name: str) -> Callable[..., None]:
        def returned(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            if id(module) in places and type(module).__module__.startswith("torch."):
                recorder(tracer.module(*places[id(module)], name, "out"), output)

        return returned

    for name, module in model.named_modules():
        if name:
            module.register_forward_pre_hook(before(name))
            module.register_forward_hook(after(name))
