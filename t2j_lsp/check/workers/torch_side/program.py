"""Whole torch programs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import nn
from torch.optim import optimizer as torch_optimizer

from t2j_lsp.check.messages import MadeModule, ProgramRun
from t2j_lsp.check.program.marks import RAN
from t2j_lsp.check.requests import TorchProgramRequest
from t2j_lsp.check.workers.programs.budget import StepBudget
from t2j_lsp.check.workers.programs.files import listed, written
from t2j_lsp.check.workers.programs.logs import Log, logging_here
from t2j_lsp.check.workers.programs.made import Constructions, assigned_names, collected
from t2j_lsp.check.workers.programs.recorder import OutputRecorder
from t2j_lsp.check.workers.programs.running import copy_folder, run
from t2j_lsp.check.workers.programs.stand_in_texts import texts_stood_in
from t2j_lsp.check.workers.programs.streams import Streams
from t2j_lsp.check.workers.widen import widen

from . import device as torch_device
from . import random as torch_random
from .build import to_array
from .constructions import reporting
from .loaders import loading_here
from .process_group import alone
from .program_random import ProgramTape, moved
from .recurrent import layer_by_layer
from .stand_ins import data_stood_in


def program(request: TorchProgramRequest) -> ProgramRun:
    """The run of the slice, a whole program, with its modules' first and last values."""
    streams = Streams(request.seed, request.classes, request.forward)
    tape = ProgramTape(streams, request.moved)
    budget = StepBudget(request.steps, request.budget)
    main = next(m for m in request.slice.modules if m.name == request.slice.module)
    names = assigned_names(main.text)
    rng = np.random.default_rng(2)
    held: list[tuple[nn.Module, MadeModule]] = []
    logs: list[Log] = []
    made_up: dict[str, None] = {}
    copy_folder(request.folder, os.getcwd())
    before = listed(os.getcwd())

    @contextmanager
    def around(recorder: OutputRecorder) -> Iterator[None]:
        def on_made(module: nn.Module) -> None:
            tape.own(module)
            if request.moved is not None:
                _move(module, request.moved, rng)
            file, line = recorder.place()
            name = names.get(line, "") if file == main.path else ""
            made = MadeModule(type(module).__name__, line, name or type(module).__name__, _state(module))
            made.parameters = [name for name, _ in module.named_parameters(remove_duplicate=False)]
            if made.state:
                held.append((module, made))

        made_here = reporting(Constructions(streams, on_made))
        leaves = _leaves_moved(request.moved, rng) if request.moved is not None else nullcontext()
        with ExitStack() as stack:
            if request.synthetic:
                texts = [m.text for m in request.slice.modules]
                stack.enter_context(data_stood_in(texts, made_up.setdefault))
                stack.enter_context(texts_stood_in(recorder.files, made_up.setdefault))
            logs.append(Log(recorder, logged_array))
            for context in (
                made_here,
                logging_here(logs[0]),
                loading_here(),
                alone(),
                layer_by_layer(),
                torch_random.drawing(tape),
            ):
                stack.enter_context(context)
            with _counted(budget), leaves:
                yield

    wide, default = request.wide, torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if wide else torch.float32)
    torch_device.seed(request.seed)
    try:
        with torch_device.chosen_by_program():
            result, module = run(request, lambda t, p: widen(t, p) if wide else t, shown, budget, around)
    finally:
        torch.set_default_dtype(default)
        torch.set_grad_enabled(True)
    result.made = [made for _, made in held]
    for index, (one, made) in enumerate(held):
        result.final[str(index)] = MadeModule(made.type, made.line, made.name, _state(one), made.parameters)
    result.collected = collected(vars(module), number)
    result.logged = logs[0].logged
    result.saved = written(os.getcwd(), before, _checkpoint)
    result.draws = streams.made
    result.stood_in = list(made_up)
    result.ran = RAN.reported()
    return result


def _checkpoint(path: str) -> Any:
    """What a file of ``torch.save`` holds, with arrays for tensors. Raises whatever reading it does."""
    return _with_arrays(torch.load(path, map_location="cpu", weights_only=False))


def _with_arrays(value: Any) -> Any:
    match value:
        case torch.Tensor():
            return to_array(value)
        case torch.nn.Module():
            return _with_arrays(dict(value.state_dict()))  # what its conversion saves of it
        case dict():
            return {key: _with_arrays(part) for key, part in value.items()}
        case list() | tuple():
            return [_with_arrays(part) for part in value]
    return value


def _is_complex(value: torch.Tensor | np.generic) -> bool:
    return value.is_complex() if isinstance(value, torch.Tensor) else np.iscomplexobj(value)


def number(value: Any) -> float | None:
    """The number in a tensor of one."""
    if isinstance(value, torch.Tensor | np.generic) and np.prod(tuple(value.shape)) == 1 and not _is_complex(value):
        return float(value)
    return None


def logged_array(value: Any) -> Any:
    """The array that a writer takes a tensor for."""
    return value.detach().double().cpu().numpy() if isinstance(value, torch.Tensor) else None


def shown(value: Any) -> str | None:
    """Tensors as numpy prints them; modules and optimizers by their kind."""
    if isinstance(value, nn.Module | torch.optim.Optimizer):
        return f"<{'module' if isinstance(value, nn.Module) else 'optimizer'}>"
    if isinstance(value, torch.Tensor):
        array = to_array(value)
        return str(array.tolist() if array.ndim == 0 else array) if isinstance(array, np.ndarray) else None
    return None


def _state(module: nn.Module) -> dict[str, Any]:
    state = {}
    for name, value in module.state_dict().items():
        if isinstance(value, torch.Tensor) and not isinstance(value, nn.parameter.UninitializedTensorMixin):  # type: ignore[attr-defined]
            state[name] = to_array(value)
    return state


def _move(module: nn.Module, by: float, rng: np.random.Generator) -> None:
    """Moves every parameter by a share of its size."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point() and not torch.nn.parameter.is_lazy(parameter):
                values = parameter.detach().double().cpu().numpy()
                parameter.copy_(torch.from_numpy(np.asarray(moved(values, by, rng))))


@contextmanager
def _leaves_moved(by: float, rng: np.random.Generator) -> Iterator[None]:
    """The first time that tensors outside of modules get gradients, they are moved by a share of their size."""
    original: Any = torch.Tensor.backward
    seen: set[int] = set()
    kept: list[torch.Tensor] = []  # so that no other tensor gets the identity of one that was seen

    def backward(loss: torch.Tensor, *arguments: Any, **options: Any) -> None:
        for leaf in _leaves(loss):
            if id(leaf) not in seen:
                seen.add(id(leaf))
                kept.append(leaf)
                if not isinstance(leaf, nn.Parameter):
                    values = np.asarray(moved(leaf.detach().double().cpu().numpy(), by, rng))
                    leaf.data.copy_(torch.from_numpy(values))
        original(loss, *arguments, **options)

    with mock.patch.object(torch.Tensor, "backward", backward):
        yield


def _leaves(loss: torch.Tensor) -> Iterator[torch.Tensor]:
    """The tensors that a loss gives gradients to."""
    stack, seen = [loss.grad_fn], set()
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if (leaf := getattr(node, "variable", None)) is not None:
            yield leaf
        stack += [following for following, _ in node.next_functions]


@contextmanager
def _counted(budget: StepBudget) -> Iterator[None]:
    """Counts the steps of every optimizer."""
    hooks = [
        torch_optimizer.register_optimizer_step_pre_hook(lambda *_: budget.before()),
        torch_optimizer.register_optimizer_step_post_hook(lambda *_: budget.after()),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
