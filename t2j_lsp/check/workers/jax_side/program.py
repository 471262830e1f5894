"""Whole converted programs."""

from __future__ import annotations

import builtins
import functools
import importlib
import os
import pickle
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import jax
import numpy as np
import optax  # type: ignore[import-untyped]
from flax import nnx
from flax.nnx import pytreelib
from flax.nnx.transforms import compilation

from t2j_lsp.check.messages import MadeModule, ProgramRun
from t2j_lsp.check.program.marks import RAN
from t2j_lsp.check.requests import JaxProgramRequest
from t2j_lsp.check.workers.programs.budget import StepBudget
from t2j_lsp.check.workers.programs.files import listed, written
from t2j_lsp.check.workers.programs.logs import Log, logging_here
from t2j_lsp.check.workers.programs.made import Constructions, collected
from t2j_lsp.check.workers.programs.recorder import OutputRecorder
from t2j_lsp.check.workers.programs.running import copy_folder, run
from t2j_lsp.check.workers.programs.stand_in_texts import texts_stood_in
from t2j_lsp.check.workers.programs.streams import Streams
from t2j_lsp.check.workers.widen import enables_x64, widen
from t2j_lsp.weights import load_torch_state, torch_names, torch_state

from . import program_random
from . import random as jax_random
from .build import to_array, to_numpy, widen_module

_COUNTER = "num_batches_tracked"


class _ProgramCounts:
    """What the replaced parts of flax report to while a program runs."""

    def __init__(self, constructions: Constructions, budget: StepBudget) -> None:
        self.constructions = constructions
        self.budget = budget
        self.updates = 0
        """Updates by optimizers so far, those that were only traced among them."""
        self.updating = False
        """Whether one of these is being made."""
        self.compiled = 0
        """How many compiled functions are running, one inside the other."""
        self.traced: dict[Any, int] = {}
        """How many updates a call of a compiled function makes."""


_installed: list[str] = []


def program(request: JaxProgramRequest) -> ProgramRun:
    """The run of the slice, a whole program whose modules start as torch's did (``made``)."""
    streams = Streams(request.seed, request.classes, request.forward)
    budget = StepBudget(request.steps, request.budget)
    torch_made = request.made
    plain = set(request.underived) - {one.type for one in torch_made}
    wide = request.wide
    texts = [m.text for m in request.slice.modules]
    pairs: dict[int, nnx.Module] = {}
    problems: list[str] = []
    logs: list[Log] = []
    made_up: dict[str, None] | None = {} if request.synthetic else None
    copy_folder(request.folder, os.getcwd())
    before = listed(os.getcwd())

    @contextmanager
    def around(recorder: OutputRecorder) -> Iterator[None]:
        def on_made(module: nnx.Module) -> None:
            problem = _start_as_torch(module, torch_made, pairs, wide)
            if problem is not None:
                problems.append(f"line {recorder.place()[1]}: {problem}")

        with ExitStack() as stack:
            stack.enter_context(jax_random.drawing(program_random.ProgramTape(streams)))
            stack.enter_context(program_random.initializing(streams))
            stack.enter_context(_reporting(_ProgramCounts(Constructions(streams, on_made, plain), budget)))
            if any("torch" in text for text in texts):
                stack.enter_context(_kept_torch(streams, wide, texts, made_up))
            if made_up is not None:
                stack.enter_context(texts_stood_in(recorder.files, made_up.setdefault))
            logs.append(Log(recorder, logged_array))
            stack.enter_context(logging_here(logs[0]))
            yield

    x64 = wide or any(enables_x64(text) for text in texts)
    with jax.enable_x64(x64):
        result, module = run(request, lambda t, p: widen(t, p) if wide else t, shown, budget, around)
        for index, one in pairs.items():
            _refuse_if_compiled(one)
            state = {n: v for n, v in _state(one).items() if n not in _further_names(one, torch_made[index].state)}
            result.final[str(index)] = MadeModule(type(one).__name__, 0, torch_made[index].name, state)
        result.collected = collected(vars(module), number)
    result.logged = logs[0].logged
    result.saved = written(os.getcwd(), before, _checkpoint)
    result.problems = problems
    result.draws = streams.made
    result.stood_in = list(made_up or ())
    result.ran = RAN.reported()
    return result


def number(value: Any) -> float | None:
    """The number in an array of one."""
    kinds = (jax.Array, np.ndarray, np.generic, nnx.Variable)
    if isinstance(value, kinds) and np.prod(np.shape(value)) == 1 and np.asarray(value).dtype.kind in "fiub":
        return float(np.asarray(value).reshape(()))
    return None


def logged_array(value: Any) -> Any:
    """The array that tensorboardX takes for itself, which it doesn't take out of a Variable."""
    return np.asarray(value) if isinstance(value, jax.Array) else None


def shown(value: Any) -> str | None:
    """Arrays as numpy prints them; modules and optimizers by their kind."""
    if isinstance(value, nnx.Module | nnx.Optimizer):
        return f"<{'module' if isinstance(value, nnx.Module) else 'optimizer'}>"
    if isinstance(value, jax.Array | nnx.Variable):
        array = to_array(value)
        return str(array.tolist() if array.ndim == 0 else array) if isinstance(array, np.ndarray) else None
    return None


class MadeInCompiledCode(Exception):
    """A module was made while a function was traced."""


def _refuse_if_compiled(module: nnx.Module) -> None:
    """Raises MadeInCompiledCode for a module of which nothing is left behind the function that made it."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(nnx.state(module))):
        kind = type(module).__name__
        raise MadeInCompiledCode(f"each call makes a {kind} within compiled code, whose weights are random ones")


def _checkpoint(path: str) -> Any:
    """What a pickled file holds. Raises whatever reading it does."""
    with open(path, "rb") as file:
        return pickle.load(file)


def _state(module: nnx.Module) -> dict[str, Any]:
    return {name: to_array(value) for name, value in torch_state(module).items() if not name.endswith(_COUNTER)}


def _start_as_torch(module: nnx.Module, made: list[MadeModule], pairs: dict[int, nnx.Module], wide: bool) -> str | None:
    """Gives a module the values of the first of torch's that fits and is left. Says what is wrong, if anything."""
    entries = {name: entry.shape for name, entry in torch_names(module).items() if entry.variables}
    if not entries:
        return None
    of_kind = []
    for index, one in enumerate(made):
        shapes = {n: tuple(v.shape) for n, v in one.state.items() if not n.endswith(_COUNTER)}
        further = _further_names(module, shapes)
        if index not in pairs and shapes == {n: shape for n, shape in entries.items() if n not in further}:
            of_kind.append(index)
    named = [index for index in of_kind if made[index].type == type(module).__name__]
    if not of_kind:
        return f"{type(module).__name__} starts with values of its own: PyTorch makes none with such parameters"
    index = (named or of_kind)[0]
    pairs[index] = module
    if wide:
        widen_module(module)
    values = {name: to_numpy(value, wide) for name, value in made[index].state.items()}
    further = _further_names(module, values)
    load_torch_state(module, values | {name: values[first] for name, first in further.items()})
    return None


def _further_names(module: nnx.Module, names: Collection[str]) -> dict[str, str]:
    """Names that JAX has for variables of other names, and PyTorch has not: of layers that a plain list holds, too."""
    entries = {name: entry for name, entry in torch_names(module).items() if entry.variables}
    first = {id(entry.variables[0]): name for name, entry in entries.items() if name in names}
    tied = {name: first.get(id(entry.variables[0])) for name, entry in entries.items() if name not in names}
    return {name: other for name, other in tied.items() if other is not None}


@contextmanager
def _kept_torch(streams: Streams, wide: bool, texts: list[str], made_up: dict[str, None] | None) -> Iterator[None]:
    """Torch's part in the program, its loaders, draws the same numbers and loads in this process.

    ``made_up`` gets what of its data is made up; None where nothing is to be.
    """
    side = "t2j_lsp.check.workers.torch_side"
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        yield
        return
    torch_random = importlib.import_module(f"{side}.random")
    if "torch" not in _installed:
        _installed.append("torch")
        torch_random.install()
        torch.set_num_threads(1)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if wide else torch.float32)
    try:
        tape = importlib.import_module(f"{side}.program_random").ProgramTape(streams)
        with ExitStack() as stack:
            stack.enter_context(torch_random.drawing(tape))
            stack.enter_context(importlib.import_module(f"{side}.loaders").loading_here())
            if made_up is not None:
                stand_ins = importlib.import_module(f"{side}.stand_ins")
                stack.enter_context(stand_ins.data_stood_in(texts, made_up.setdefault))
            yield
    finally:
        torch.set_default_dtype(default)


@contextmanager
def _reporting(run: _ProgramCounts) -> Iterator[None]:
    """Constructors of modules, compiled functions and optimizers report to the run in this context."""
    meta: Any = pytreelib.PytreeMeta
    with ExitStack() as stack:

        def replace(owner: Any, name: str, make: Callable[[Callable[..., Any], _ProgramCounts], Any]) -> None:
            stack.enter_context(mock.patch.object(owner, name, make(getattr(owner, name), run)))

        replace(meta, "__call__", _made)
        replace(nnx.Optimizer, "update", _counted)
        replace(optax, "apply_updates", _counted)
        replace(builtins, "__build_class__", _built)
        for name in ("JitWrapped", "SimpleJitWrapped", "SimpleJitPartialWrapped"):
            if hasattr(compilation, name):
                replace(getattr(compilation, name), "__call__", _compiled)
        yield


def _made(construct: Callable[..., Any], run: _ProgramCounts) -> Callable[..., Any]:
    """A constructor; those of modules are noted."""

    @functools.wraps(construct)
    def made(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not issubclass(cls, nnx.Module):
            return construct(cls, *args, **kwargs)
        with run.constructions.making(cls):
            module = construct(cls, *args, **kwargs)
        if not (run.compiled and _holds_module(args, kwargs)):
            run.constructions.made(module)
        return module

    return made


def _holds_module(*given: Any) -> bool:
    """Whether a constructor is given modules: in a compiled function what it makes is a view of them, ``net[:2]``."""
    leaves = jax.tree.leaves(given, is_leaf=lambda value: isinstance(value, nnx.Module))
    return any(isinstance(leaf, nnx.Module) for leaf in leaves)


def _counted(original: Callable[..., Any], run: _ProgramCounts) -> Callable[..., Any]:
    """An optimizer's update: one step, unless it is only traced here."""

    @functools.wraps(original)
    def update(*args: Any, **kwargs: Any) -> Any:
        if run.updating:
            return original(*args, **kwargs)
        run.budget.before()
        run.updates += 1
        run.updating = True
        try:
            result = original(*args, **kwargs)
        finally:
            run.updating = False
        if not run.compiled:
            run.budget.after()
        return result

    return update


def _built(build: Callable[..., Any], run: _ProgramCounts) -> Callable[..., Any]:
    """What makes classes. The L-BFGS of a conversion has no update of Flax: its steps are counted."""

    @functools.wraps(build)
    def built(body: Any, name: str, *bases: Any, **options: Any) -> Any:
        made = build(body, name, *bases, **options)
        if name.startswith("LBFGS") and "step" in vars(made):
            made.step = _counted(made.step, run)
        return made

    return built


def _compiled(original: Callable[..., Any], run: _ProgramCounts) -> Callable[..., Any]:
    """A call of a compiled function: as many steps as updates were traced in it."""

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if run.compiled:
            return original(self, *args, **kwargs)
        if run.traced.get(self):
            run.budget.before()
        updates = run.updates
        run.compiled += 1
        try:
            result = original(self, *args, **kwargs)
        finally:
            run.compiled -= 1
        if run.updates > updates:
            run.traced[self] = run.updates - updates
        run.budget.after(run.traced.get(self, 0))
        return result

    return call
