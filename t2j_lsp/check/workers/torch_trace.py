"""Runs a torch program with every statement's value, and its gradient, recorded."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from torch import nn

from t2j_lsp.check.inputs import Arguments, map_values
from t2j_lsp.check.protocol import plain
from t2j_lsp.check.trace import NAME, Tracer

from .torch_build import build, program, to_array
from .torch_observe import Runs, differentiable, set_state

MAX_EVENTS = 4000
MAX_BYTES = 400 * 1024**2


class Recorder:
    """The values that statements reported, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[int, Any, list[torch.Tensor]]] = []
        self.bytes = 0
        self.on = False

    def __call__(self, site: int, value: Any) -> Any:
        if not self.on or len(self.events) >= MAX_EVENTS or self.bytes >= MAX_BYTES:
            return value
        self.on = False
        value = map_values(value, _alias)
        followed: list[torch.Tensor] = []

        def leaf(item: Any) -> Any:
            array = to_array(item)
            if array is not None:
                self.bytes += item.numel() * item.element_size()
            if differentiable(item) and item.requires_grad and not item.is_leaf:
                item.retain_grad()
                followed.append(item)
            return array

        self.events.append((site, plain(value, leaf), followed))
        self.on = True
        return value


def _alias(item: Any) -> Any:
    """The same values as a tensor of its own: its gradient is then that of what follows this statement alone."""
    if type(item) is torch.Tensor and item.requires_grad and not item.is_leaf and differentiable(item):
        return item.view_as(item)
    return item


def trace(request: dict[str, Any]) -> dict[str, Any]:
    """One call in ``mode`` with everything recorded: ``sites``, and ``events`` as ``(site, value, gradients)``.

    ``calls`` says from which line each submodule was called. The request is that of `observe`, with ``mode``.
    """
    tracer, recorder = Tracer(), Recorder()
    rng = np.random.default_rng(request["seed"])
    with program(request, tracer, {NAME: recorder}) as (module, target):
        model = build(target, Arguments.from_plain(request["init"]), vars(module), request["wide"], rng)
        calls: dict[str, list[Any]] = {}
        if isinstance(model, nn.Module):
            set_state(model, request["state"], rng, request["wide"])
            _watch_calls(model, {s.file for s in tracer.sites}, calls)
        runs = Runs(model, vars(module), request, rng)
        recorder.on = True
        output, _ = runs.differentiated(request["mode"])
        recorder.on = False
        loss = runs.loss(output)
        if loss is not None and loss.requires_grad:
            torch.autograd.backward([loss])
        events = [[site, value, [_gradient(t) for t in followed]] for site, value, followed in recorder.events]
        return {"sites": [s.to_plain() for s in tracer.sites], "events": events, "calls": calls}


def _gradient(tensor: torch.Tensor) -> Any:
    return to_array(tensor.grad if tensor.grad is not None else torch.zeros_like(tensor))


def _watch_calls(model: nn.Module, files: set[str], calls: dict[str, list[Any]]) -> None:
    """Notes the innermost line of the user's that calls each submodule."""
    names = {id(m): name for name, m in model.named_modules()}

    def called(module: nn.Module, args: tuple[Any, ...]) -> None:
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename not in files:
            frame = frame.f_back  # type: ignore[assignment]
        if frame is not None:
            calls.setdefault(names[id(module)], [frame.f_code.co_filename, frame.f_lineno])

    for module in model.modules():
        module.register_forward_pre_hook(called)
