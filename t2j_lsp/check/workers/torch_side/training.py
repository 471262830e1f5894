"""Trains a torch module with the optimizer, the schedule and the loss of its own file."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from typing import Any

import numpy as np
import torch

from t2j_lsp.check.arguments.command_line import GIVEN
from t2j_lsp.check.arguments.recipe import Recipe
from t2j_lsp.check.inputs import METRICS, OWN, PULLS, PUSH, Arguments, map_values
from t2j_lsp.check.messages import TorchTrained, TrainingReference
from t2j_lsp.check.program.digest import digest
from t2j_lsp.check.program.marks import RAN
from t2j_lsp.check.requests import TorchTrainRequest
from t2j_lsp.check.workers.training_objects import made

from .build import build, give_sizes, program, to_array, to_tensor
from .runs import Runs, set_state

NOISE = 1e-9
"""Gradients below this part of the largest are rounding's: Adam would make whole steps of them."""
_OF_CLASSES = ("CrossEntropyLoss", "NLLLoss", "MultiMarginLoss", "cross_entropy", "nll_loss")
_SMALL = 200_000
"""Elements of a module up to which it is worth going on with the optimizer for all counts of a schedule."""
_LONGEST = 400
"""Counts of a schedule that are looked at, at most."""


def train(request: TorchTrainRequest) -> TorchTrained:
    """What is observed in updates of a module with the request's state, and what the other side needs for reference."""
    rng = np.random.default_rng(request.seed)
    try:
        with program(request) as (module, target), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = build(target, request.init, vars(module), request.wide, rng)
            give_sizes(model, request, vars(module))
            set_state(model, request.state, rng, request.wide)
            return Training(Runs(model, vars(module), request, rng), request.recipe).run(request.steps)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - code of the user's, run with values that we made up
        return TorchTrained(problem=f"{type(error).__name__}: {error}".strip().splitlines()[0][:200])


class Training:
    """What a recipe made for one model."""

    def __init__(self, runs: Runs, recipe: Recipe) -> None:
        self.runs = runs
        if any(p.is_complex() for p in runs.model.parameters()):
            raise ValueError("its parameters are complex")
        optimizer = made(recipe, runs.model, runs.namespace, runs.wide)
        self.optimizer: torch.optim.Optimizer = optimizer["optimizer"]
        self.scheduler: Any = optimizer.get("scheduler")
        self.criterion: Any = optimizer.get("criterion")
        self.ignored: int | None = recipe.ignored
        self.clipping: Any = optimizer.get("clipping")
        self.kind: str = recipe.calls.get("criterion", "").rpartition(".")[2]
        self.target: torch.Tensor | None = None
        held = {id(p) for g in self.optimizer.param_groups for p in g["params"]}
        if not held & {id(p) for p in runs.model.parameters()}:
            raise ValueError("the optimizer is not this module's")
        self.uniform = len({g["lr"] for g in self.optimizer.param_groups}) == 1
        self.metric = self.scheduler is not None and "metrics" in inspect.signature(self.scheduler.step).parameters

    def run(self, count: int) -> TorchTrained:
        """The observations, and what the other side needs for reference."""
        named = dict(self.runs.model.named_parameters(remove_duplicate=False))
        largest = {name: torch.zeros_like(p) for name, p in named.items()}
        values: dict[str, Any] = {}
        momenta: dict[str, Any] = {}
        if self.kind in _OF_CLASSES:
            self.examples()
        for step in range(1, count + 1):
            output = self.runs.call("train")[0]
            if step == 1 and self.criterion is not None:
                self.target = target_for(self.criterion, self.kind, self.ignored, output, self.runs.rng)
                if self.target is not None:
                    values["train loss"] = to_array(self.criterion(output, self.target))
            loss = (
                self.criterion(output, self.target) if self.target is not None else self.runs.loss(output, squared=True)
            )
            if loss is None or not loss.requires_grad:
                raise ValueError("its output has no gradient")
            self.optimizer.zero_grad(set_to_none=True)
            pull = 1.0 if self.clipping is None else PULLS[(step - 1) % len(PULLS)]
            (pull * loss).backward()
            for name, parameter in named.items():
                if parameter.grad is not None:
                    largest[name] = torch.maximum(largest[name], parameter.grad.abs() / pull)
            values[f"step {step} {OWN}: learning rate"] = rates(self.optimizer)
            momenta[f"step {step} {OWN}: momentum"] = momentum(self.optimizer)
            values[f"step {step} {OWN}: loss"] = to_array(loss)
            if self.clipping is not None:
                self.clipping(self.runs.model.parameters())
            self.optimizer.step()
            if self.scheduler is not None:
                self.scheduler.step(*((loss.item(),) if self.metric else ()))
        cycled = len({float(m) for m in momenta.values()}) > 1
        values = (momenta if cycled else {}) | values
        noise = noise_of(largest)
        for name, parameter in named.items():
            value = to_array(parameter)
            assert isinstance(value, np.ndarray)
            values[f"after {count} steps {OWN}: parameter {name}"] = digest(np.where(noise.get(name, False), 0, value))
        values |= self.runs.buffers(f"after {count} steps {OWN}: buffer")
        later, course, followed = self.later(named, count)
        if len(later):
            values[f"after {count} steps {OWN}: learning rates"] = later
        if len(course):
            values[f"after {count} steps {OWN}: course of {followed}"] = course
        both = {"optimizer": self.optimizer, "scheduler": self.scheduler}
        reference = TrainingReference(
            inputs=self.runs.inputs,
            tapes=self.runs.tapes,
            target=to_array(self.target),
            noise=noise,
            uniform=self.uniform,
            metric=self.metric,
            cycled=cycled,
            clipped=self.clipping is not None,
            counts=len(later),
            followed=followed,
            course=len(course),
            classes={kind: type(one).__name__ for kind, one in both.items() if one is not None},
            command_line=[*GIVEN],
        )
        return TorchTrained(observed=values, reference=reference, ran=RAN.reported())

    def examples(self) -> None:
        """Makes the inputs single examples where the output has three axes: nobody knows which one holds classes."""
        given, saved = self.runs.inputs, self.runs.save()

        def one(item: Any) -> Any:
            return item[:, 0] if isinstance(item, np.ndarray) and item.ndim == 3 and item.dtype.kind == "f" else item

        for inputs in (given, Arguments(map_values(given.args, one), map_values(given.kwargs, one))):
            self.runs.inputs = inputs
            output = None
            with contextlib.suppress(Exception):
                output = self.runs.call("train")[0]
            self.runs.restore(saved)
            self.runs.tapes.clear()
            if isinstance(output, torch.Tensor) and output.ndim != 3:
                return
        self.runs.inputs, self.criterion = given, None

    def later(self, named: dict[str, torch.Tensor], done: int) -> tuple[Any, Any, str]:
        """The learning rates of as many further counts of the schedule as it takes to see all of it.

        Also the mean of one parameter in them, under gradients that are all the same, and its name: as far as the
        schedule's own numbers go, since a program that has its schedule in the optimizer may rely on ending there.
        """
        if self.scheduler is None:
            return np.zeros((0, 2)), np.zeros(0), ""
        pushed = {n: p for n, p in named.items() if p.grad is not None}
        followed = min(pushed, key=lambda name: pushed[name].numel(), default="")
        alone = not self.metric and self.clipping is None
        follow = followed and alone and sum(p.numel() for p in named.values()) < _SMALL
        later_rates, course = [], []
        for number in range(len(METRICS) if self.metric else horizon(self.scheduler, done)):
            for parameter in pushed.values():
                parameter.grad = torch.full_like(parameter, PUSH) if follow else None
            try:
                self.optimizer.step()
                self.scheduler.step(*((METRICS[number],) if self.metric else ()))
            except ValueError:
                break  # OneCycleLR has an end.
            later_rates.append(rates(self.optimizer))
            course.append(float(pushed[followed].mean()) if follow else 0.0)
        reached = max(len(course) // 2 - done, 0) if not hasattr(self.scheduler, "lr_lambdas") else len(course)
        return np.asarray(later_rates).reshape(-1, 2), np.asarray(course[:reached] if follow else []), followed


def rates(optimizer: torch.optim.Optimizer) -> Any:
    """The least and the largest learning rate of an optimizer's groups."""
    every = [float(g["lr"]) for g in optimizer.param_groups]
    return np.asarray([min(every), max(every)])


def momentum(optimizer: torch.optim.Optimizer) -> Any:
    """The momentum of an optimizer's first group: what schedules set in turn with the learning rate."""
    group = optimizer.param_groups[0]
    return np.asarray(float(group["betas"][0] if "betas" in group else group.get("momentum", 0.0)))


def horizon(scheduler: Any, done: int) -> int:
    """A number of counts beyond all that a schedule is told; as far as its numbers go where a function is the schedule.

    What such a function gives beyond them is no part of the program. ``done`` counts are over.
    """
    functions = [f for f in getattr(scheduler, "lr_lambdas", ()) if f is not None]
    if functions:
        return min(_LONGEST, max((n for f in functions for n in numbers_of(f)), default=20) - done)
    numbers = [12]
    for value in [vars(s) for s in (scheduler, *getattr(scheduler, "_schedulers", ()))]:
        for item in value.values():
            items = list(item) if isinstance(item, list | tuple | dict) else [item]
            numbers += [int(i) for i in items if isinstance(i, int | float) and not isinstance(i, bool) and 1 < i < 1e6]
    return min(_LONGEST, 2 * max(numbers) + 2)


def numbers_of(function: Any) -> list[int]:
    """The whole numbers that a function knows: its constants, what it closes over, the globals that it names."""
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    cells = [c.cell_contents for c in function.__closure__ or ()]
    known = [function.__globals__.get(name) for name in code.co_names]
    return [n for n in (*code.co_consts, *cells, *known) if isinstance(n, int) and not isinstance(n, bool) and n < 1e6]


def noise_of(largest: dict[str, torch.Tensor]) -> dict[str, Any]:
    """Elements whose gradients were never zero and never more than rounding, by parameter."""
    top = max((float(g.max()) for g in largest.values() if g.numel()), default=0.0)
    masks = {name: ((g > 0) & (g < NOISE * top)).cpu().numpy() for name, g in largest.items()}
    return {name: mask for name, mask in masks.items() if mask.any()}


def target_for(
    criterion: Any, kind: str, ignored: int | None, output: Any, rng: np.random.Generator
) -> torch.Tensor | None:
    """A target with which a loss function gives a number for this output; None where it has none.

    One of the classes is the one that the program ignores, if it says so.
    """
    if not isinstance(output, torch.Tensor) or not output.is_floating_point() or output.ndim == 0:
        return None
    shape = tuple(output.shape)
    floats = [rng.uniform(0.05, 0.95, shape), rng.standard_normal(shape)]
    classes = output.shape[min(output.ndim - 1, 1)]
    indices = rng.integers(0, classes, shape[:1] + shape[2:] if output.ndim > 1 else ())
    if ignored is not None and indices.size > 1:
        indices.flat[-1] = ignored
    first = [indices] if kind in _OF_CLASSES else []
    for values in (*first, *(floats if "BCE" in kind or "binary" in kind else floats[::-1]), indices):
        array = np.asarray(values, np.float32 if np.asarray(values).dtype.kind == "f" else np.int64)
        target = to_tensor(array, output.dtype == torch.float64)
        try:
            loss = criterion(output.detach(), target)
        except (RuntimeError, ValueError, IndexError, TypeError):
            continue
        if isinstance(loss, torch.Tensor) and loss.ndim == 0 and bool(torch.isfinite(loss)):
            return target
    return None
