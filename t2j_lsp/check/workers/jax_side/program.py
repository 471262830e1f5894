"""Whole converted programs."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import jax
import numpy as np
from flax import nnx
from flax.nnx import pytreelib
from flax.nnx.transforms import compilation

from t2j_lsp.check.messages import MadeModule, ProgramRun
from t2j_lsp.check.program.marks import RAN
from t2j_lsp.check.workers.programs.budget import StepBudget
from t2j_lsp.check.workers.programs.files import listed, written
from t2j_lsp.check.workers.programs.made import Constructions, collected
from t2j_lsp.check.workers.programs.recorder import OutputRecorder
from t2j_lsp.check.workers.programs.running import copy_folder, run
from t2j_lsp.check.workers.programs.streams import Streams
from t2j_lsp.check.workers.widen import enables_x64, widen
from t2j_lsp.weights import load_torch_state, torch_names, torch_state

from . import program_random
from . import random as jax_random
from .build import to_array, to_numpy

_COUNTER = "num_batches_tracked"


class _Run:
    """What the replaced parts of flax report to while a program runs."""

    def __init__(self, constructions: Constructions, budget: StepBudget) -> None:
        self.constructions = constructions
        self.budget = budget
        self.updates = 0
        """Updates by optimizers so far, those that were only traced among them."""
        self.compiled = 0
        """How many compiled functions are running, one inside the other."""


_run: _Run | None = None
_installed: list[str] = []


def program(request: dict[str, Any]) -> ProgramRun:
    """The run of the slice, a whole program whose modules start as torch's did (``made``)."""
    streams = Streams(request["seed"])
    budget = StepBudget(request["steps"], request["budget"])
    torch_made = [MadeModule.from_plain(one) for one in request["made"]]
    wide = request["wide"]
    texts = [m["text"] for m in request["slice"]["modules"]]
    pairs: dict[int, nnx.Module] = {}
    problems: list[str] = []
    copy_folder(request["folder"], os.getcwd())
    before = listed(os.getcwd())

    @contextmanager
    def around(recorder: OutputRecorder) -> Iterator[None]:
        def on_made(module: nnx.Module) -> None:
            problem = _start_as_torch(module, torch_made, pairs, wide)
            if problem is not None:
                problems.append(f"line {recorder.place()[1]}: {problem}")

        global _run
        _install()
        _run = _Run(Constructions(streams, on_made), budget)
        try:
            with ExitStack() as stack:
                stack.enter_context(jax_random.drawing(program_random.ProgramTape(streams)))
                if any("torch" in text for text in texts):
                    stack.enter_context(_kept_torch(streams, wide))
                yield
        finally:
            _run = None

    program_random.install(lambda: None if _run is None else streams_of(_run))
    x64 = wide or any(enables_x64(text) for text in texts)
    with jax.enable_x64(x64):
        result, module = run(request, lambda t, p: widen(t, p) if wide else t, shown, budget, around)
        for index, one in pairs.items():
            result.final[str(index)] = MadeModule(type(one).__name__, 0, torch_made[index].name, _state(one))
        result.collected = collected(vars(module), number)
    result.saved = written(os.getcwd(), before)
    result.problems = problems
    result.ran = RAN.to_plain()
    return result


def streams_of(run: _Run) -> Streams:
    """The draws of a run."""
    return run.constructions.streams


def number(value: Any) -> float | None:
    """The number in an array of one."""
    kinds = (jax.Array, np.ndarray, np.generic, nnx.Variable)
    if isinstance(value, kinds) and np.prod(np.shape(value)) == 1 and np.asarray(value).dtype.kind in "fiub":
        return float(np.asarray(value).reshape(()))
    return None


def shown(value: Any) -> str | None:
    """Arrays as numpy prints them; modules and optimizers by their kind."""
    if isinstance(value, nnx.Module | nnx.Optimizer):
        return f"<{'module' if isinstance(value, nnx.Module) else 'optimizer'}>"
    if isinstance(value, jax.Array | nnx.Variable):
        array = to_array(value)
        return str(array.tolist() if array.ndim == 0 else array) if isinstance(array, np.ndarray) else None
    return None


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
        if index not in pairs and shapes == entries:
            of_kind.append(index)
    named = [index for index in of_kind if made[index].type == type(module).__name__]
    if not of_kind:
        return f"{type(module).__name__} starts with values of its own: PyTorch makes none with such parameters"
    index = (named or of_kind)[0]
    pairs[index] = module
    load_torch_state(module, {name: to_numpy(value, wide) for name, value in made[index].state.items()})
    return None


@contextmanager
def _kept_torch(streams: Streams, wide: bool) -> Iterator[None]:
    """Torch's part in the program, its loaders, draws the same numbers and loads in this process."""
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
        importlib.import_module(f"{side}.loaders").install()
        torch.set_num_threads(1)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if wide else torch.float32)
    try:
        with torch_random.drawing(importlib.import_module(f"{side}.program_random").ProgramTape(streams)):
            yield
    finally:
        torch.set_default_dtype(default)


def _install() -> None:
    """Lets constructors of modules, compiled functions and optimizers report, once."""
    if "flax" in _installed:
        return
    _installed.append("flax")
    meta: Any = pytreelib.PytreeMeta
    construct = meta.__call__

    @functools.wraps(construct)
    def made(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if _run is None or not issubclass(cls, nnx.Module):
            return construct(cls, *args, **kwargs)
        with _run.constructions.making():
            module = construct(cls, *args, **kwargs)
        if _run is not None:
            _run.constructions.made(module)
        return module

    meta.__call__ = made
    nnx.Optimizer.update = _counted(nnx.Optimizer.update)  # type: ignore[method-assign]
    for name in ("JitWrapped", "SimpleJitWrapped"):
        wrapped = getattr(compilation, name, None)
        if wrapped is not None:
            wrapped.__call__ = _compiled(wrapped.__call__)


def _counted(original: Callable[..., Any]) -> Callable[..., Any]:
    """An optimizer's update: one step, unless it is only traced here."""

    @functools.wraps(original)
    def update(*args: Any, **kwargs: Any) -> Any:
        if _run is None:
            return original(*args, **kwargs)
        _run.budget.before()
        _run.updates += 1
        found = original(*args, **kwargs)
        if _run is not None and not _run.compiled:
            _run.budget.after()
        return found

    return update


def _compiled(original: Callable[..., Any]) -> Callable[..., Any]:
    """A call of a compiled function: as many steps as updates were traced in it."""

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _run is None or _run.compiled:
            return original(self, *args, **kwargs)
        run = _run
        if vars(self).get("_t2j_updates"):
            run.budget.before()
        updates = run.updates
        run.compiled += 1
        try:
            found = original(self, *args, **kwargs)
        finally:
            run.compiled -= 1
        if run.updates > updates:
            vars(self)["_t2j_updates"] = run.updates - updates
        run.budget.after(vars(self).get("_t2j_updates", 0))
        return found

    return call
