"""A converted program that is run with given arguments, eagerly and under ``jit``: its inputs, phases and results."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from t2j_lsp.check.inputs import BESIDE, RAISING, Arguments, map_values
from t2j_lsp.check.messages import DrawProblem, Failure, HalfCast, JaxObserved, Observations
from t2j_lsp.check.process.budget import NARROW, TRAINING, TimeBudget
from t2j_lsp.check.program.digest import digest
from t2j_lsp.check.program.marks import RAN
from t2j_lsp.check.protocol import Namespace, leaves, plain
from t2j_lsp.check.requests import JaxRequest
from t2j_lsp.check.workers.serve import failure, raised

from . import random as jax_random
from .adam import Adam, squared_norm
from .build import build, construct, realise, takes_rngs, to_array
from .channels import called
from .device import Options, usual_loops
from .pairing import layout_of, names_of, value_of

Run = Callable[[Any, list[Any]], Any]
"""A call of a model with its array inputs."""
_CAREFULLY: Options = {"xla_disable_hlo_passes": "fusion"}
"""For values. Workers compile in haste and without XLA's algebraic simplifier (`environment.py`), and on the CPU two
things go wrong so, which are no mistakes of the program. Fusion computes an array once more in each kernel that reads
it, and may round it otherwise there: no element equals the maximum any more, and the gradient of ``max`` is 0 / 0. And
without the simplifier, a softmax over the first of several axes comes out wrong from a length of 5 on."""
_SHOWING_NAN: Options = {"xla_disable_hlo_passes": "algsimp,fusion"}
"""For the NaN among gradients: the simplifier makes 0 of 0 * inf, which the same code gives as NaN without ``jit``."""


class ProgramSession:
    """One converted program with its state and inputs, and the results of its phases."""

    def __init__(self, request: JaxRequest, namespace: Namespace, target: Any) -> None:
        self.request = request
        self.namespace = namespace
        self.target = target
        self.wide: bool = request.wide
        self.careful: bool = request.careful
        self.model: Any = None
        self.observed: dict[str, Observations] = {}
        self.errors: dict[str, Failure] = {}
        self.halves: list[HalfCast] = []
        self.draws: dict[str, list[DrawProblem]] = {}
        self.seconds: dict[str, float] = {}
        self.arrays, self.slots = list[jax.Array](), list[int]()
        self.budget = TimeBudget(request.seconds)
        self.first = 0.0
        """Seconds of the first call under ``jit`` in evaluation mode, with its compilation."""
        self.frozen_draws = False
        self.reserve = TRAINING + NARROW if request.gradients else 0.0
        """What is yet to be done and not to be left out, as a multiple of these."""

    def affords(self, what: str, multiple: float, seconds: float = 0.0) -> bool:
        """Whether there is time for what takes so often as long as the first call, or so many seconds more."""
        return self.budget.affords(what, (multiple + self.reserve) * self.first + seconds)

    def phase(self, name: str, mode: str, work: Callable[[], Observations]) -> None:
        """Runs one phase; in a mode, with torch's draws of that mode."""
        start = time.monotonic()
        try:
            with jax_random.replaying(self.request.tapes.get(mode), self.request.seed) as tape:
                self.observed[name] = work()
        except Exception as error:  # noqa: BLE001 - the user's code may raise anything; it is the result of this phase
            self.errors[name] = failure(error)
        else:
            if tape is not None and tape.problems:
                self.draws[name] = tape.problems
        self.seconds[name] = time.monotonic() - start

    def result(self) -> JaxObserved:
        """The answer to the request."""
        return JaxObserved(
            observed=self.observed,
            errors=self.errors,
            frozen_draws=self.frozen_draws,
            draws=self.draws,
            seconds=self.seconds,
            halves=self.halves,
            first=self.first,
            paired=any(own != torch for torch, own, _ in getattr(self.model, "t2j_pairs", ())),
            paired_by_order=getattr(self.model, "t2j_pairs_sure", True) is False,
            x64=bool(jax.dtypes.canonicalize_dtype(np.float64) == np.float64),
            left_out=self.budget.left_out,
            ran=RAN.reported(),
        )

    def create(self) -> Any:
        """The model as its constructor leaves it."""
        return construct(self.target, self.request.init, self.namespace, self.wide)

    def construct(self) -> Observations:
        """Builds the model and the list of its array inputs."""
        self.model = build(self.target, self.namespace, self.request)
        self.take(self.request.inputs)
        return {}

    def take(self, inputs: Arguments) -> None:
        """Makes these the program's inputs."""
        self.args = realise(inputs.args, self.namespace, self.wide)
        self.kwargs = realise(inputs.kwargs, self.namespace, self.wide)
        self.arrays, self.slots = [], []
        counter = iter(range(100_000))

        def collect(item: Any) -> Any:
            index = next(counter)
            if isinstance(item, jax.Array):
                self.slots.append(index)
                self.arrays.append(item)
            return item

        map_values((self.args, self.kwargs), collect)

    def call(self, model: Any, arrays: list[Any]) -> Any:
        """One call, with ``arrays`` in the places of the array inputs."""
        stream = iter(arrays)
        args, kwargs = map_values(
            (self.args, self.kwargs), lambda item: next(stream) if isinstance(item, jax.Array) else item
        )
        if not isinstance(model, nnx.Module) and takes_rngs(model):
            kwargs = {**kwargs, "rngs": nnx.Rngs(0)}
        jax_random.rewind(self.request.seed)
        return called(model, args, kwargs, self.request.pairing.layout)

    def fresh(self, train: bool) -> Any:
        """The model with torch's state, in a mode."""
        if not isinstance(self.model, nnx.Module):
            return self.model
        model: Any = nnx.clone(self.model)
        (model.train if train else model.eval)()
        return model

    def jitted(self, function: Run) -> Run:
        """``function`` of a model and arrays, compiled; changes to the model reach it."""
        if not self.arrays and not isinstance(self.model, nnx.Module):
            return function  # of plain values, which nobody compiles by itself
        if self.careful:
            return self.compiled(function, _CAREFULLY | usual_loops())
        if isinstance(self.model, nnx.Module):
            return cast("Run", nnx.jit(function))
        simple = jax.jit(lambda arrays: function(self.model, arrays))
        return lambda model, arrays: simple(arrays)

    def compiled(self, function: Run, options: Options) -> Run:
        """As `jitted`, compiled with options of XLA."""
        if isinstance(self.model, nnx.Module):
            return for_each_form(nnx.jit(function), options)
        known: dict[Any, Any] = {}

        def run(model: Any, arrays: list[Any]) -> Any:
            form = tuple((a.shape, a.dtype) for a in arrays)
            if form not in known:
                known[form] = jax.jit(lambda arrays: function(model, arrays)).lower(arrays).compile(options)
            return known[form](arrays)

        return run

    def compiled_update(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that changes its arguments (model, optimizer, arrays), compiled."""
        compiled = nnx.jit(function)
        if not self.careful:
            return compiled
        return for_each_form(compiled, _CAREFULLY | usual_loops())

    def differentiated(self, function: Run) -> Run:
        """As `jitted`, for a function that returns gradients."""
        values = self.jitted(function)
        if not self.careful or not self.request.nan:
            return values
        showing_nan = self.compiled(function, _SHOWING_NAN | usual_loops())

        def run(model: Any, arrays: list[Any]) -> Any:
            copied = nnx.clone(model) if isinstance(model, nnx.Module) else model
            shown = showing_nan(copied, arrays)
            return jax.tree.map(_with_nan, values(model, arrays), shown)

        return run

    def forward(self, shape: OutputStructure, jit: bool = True) -> Run:
        """One call of a model, whose output's structure goes to ``shape``."""

        def run(model: Any, arrays: list[Any]) -> list[Any]:
            return shape.take(self.call(model, arrays))

        return self.jitted(run) if jit else run

    def evaluate(self, jit: bool) -> Observations:
        """Two calls in evaluation mode and the buffers afterwards; under ``jit``, also calls with other inputs.

        Without ``jit``, calls with the inputs that are to raise an error.
        """
        model, shape = self.fresh(train=False), OutputStructure()
        run = self.forward(shape, jit)
        times = [time.monotonic()]
        values = {}
        for name in ("eval output", "eval output again"):
            values[name] = shape.fill(run(model, self.arrays))
            times.append(time.monotonic())
        if jit:
            self.first = times[1] - times[0]
        values |= self.buffers("buffer after eval", model)
        try:
            values |= self._with_other_inputs(run, shape, jit, times[2] - times[1])
        finally:
            self.take(self.request.inputs)
        return values

    def _with_other_inputs(self, run: Run, shape: OutputStructure, jit: bool, seconds: float) -> Observations:
        """Calls with other inputs: those to raise an error without ``jit``, the others under it if they can be."""
        forms = [a.shape for a in self.arrays]
        values: Observations = {}
        for name, given in self.request.variants.items():
            raising = name.startswith(RAISING)
            if raising == jit and (jit or "eval under jit" not in self.errors):
                continue  # Values can't decide about an error under ``jit``.
            self.take(given)
            again = forms != [a.shape for a in self.arrays]
            if not raising and not self.affords(name, float(again), seconds):
                continue
            try:
                values[name] = shape.fill(run(self.fresh(train=False), self.arrays))
            except Exception as error:  # an error is what is wanted here
                if name == BESIDE:
                    continue
                if not raising:
                    raise
                values[name] = raised(error, self.namespace["__file__"])
        return values

    def train_forward(self, jit: bool = True) -> Observations:
        """One call in training mode."""
        model, shape = self.fresh(train=True), OutputStructure()
        output = self.forward(shape, jit)(model, self.arrays)
        return {"train output": shape.fill(output)} | self.buffers("buffer after train", model)

    def fresh_draws(self) -> Observations:
        """Finds out whether two calls under ``jit`` in training mode draw different numbers, without a tape.

        What is drawn may not reach the output (a branch whose scale is 0), or be the same by chance (all paths kept):
        where the module's streams have gone on, its draws are others.
        """
        model = self.fresh(train=True)
        run, before = self.forward(OutputStructure()), _draws_so_far(model)
        twice = zip(run(model, self.arrays), run(model, self.arrays), strict=True)
        same = all(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True) for a, b in twice)
        self.frozen_draws = same and _draws_so_far(model) == before
        return {}

    def buffers(self, prefix: str, model: Any) -> Observations:
        """The buffers by torch's names."""
        if not isinstance(model, nnx.Module):
            return {}
        entries = names_of(model).items()
        return {f"{prefix}: {n}": to_array(value_of(e)) for n, e in entries if e.kind == "buffer" and e.variables}

    def train(self, jit: bool) -> Observations:
        """Training steps; for a function, its gradients."""
        model = self.fresh(train=True)
        module = isinstance(model, nnx.Module)
        shape = OutputStructure()
        places = [i for i, a in enumerate(self.arrays) if jnp.issubdtype(a.dtype, jnp.inexact)]

        def loss(model: Any, floats: list[Any], arrays: list[Any]) -> tuple[Any, list[Any]]:
            arrays = list(arrays)
            for place, array in zip(places, floats, strict=True):
                arrays[place] = array
            output = shape.take(self.call(model, arrays))
            return self.loss(shape, output), output

        def gradients(model: Any, arrays: list[Any]) -> Any:
            floats = [arrays[i] for i in places]
            if module:
                wanted = (nnx.DiffState(0, trained), 1)
                return nnx.value_and_grad(loss, argnums=wanted, has_aux=True)(model, floats, arrays)
            return jax.value_and_grad(lambda f: loss(model, f, arrays), has_aux=True)(floats)

        run = self.differentiated(gradients) if jit else gradients
        steps = self.request.steps if module else 0
        adam = Adam()
        values: Observations = {}
        for step in range(1, max(steps, 1) + 1):
            (value, output), grads = run(model, self.arrays)
            by_name: dict[str, Any] = {}
            if module:
                # JAX's gradient with respect to a complex number is the conjugate of torch's.
                by_name = {
                    n: np.conj(np.asarray(g)) for n, g in layout_of(model, jax.tree.map(np.asarray, grads[0])).items()
                }
                grads = grads[1]
            if step == 1:
                if module:
                    values["train output"] = shape.fill(output)
                values |= {f"gradient of parameter: {n}": digest(g) for n, g in by_name.items()}
                for place, grad in zip(places, grads, strict=True):
                    values[f"gradient of input {self.slots[place]}"] = np.conj(np.asarray(grad))
                values |= self.buffers("buffer after train", model)
            if steps:
                values[f"step {step}: loss"] = to_array(value)
                values[f"step {step}: gradient norm"] = np.asarray(squared_norm(model, by_name) ** 0.5)
                adam.update(model, by_name)
        if steps:
            end = f"after {steps} steps"
            entries = names_of(model).items()
            parameters = [(n, e) for n, e in entries if e.kind == "parameter"]
            values |= {f"{end}: parameter {n}": digest(to_array(value_of(e))) for n, e in parameters}
            values |= self.buffers(f"{end}: buffer", model)
        return values

    def loss(self, shape: OutputStructure, output: list[Any], squared: bool = False) -> Any:
        """The output's inner product with torch's cotangents or distance from them, as on the torch side."""
        total = jnp.zeros((), jnp.float64 if self.wide else jnp.float32)
        for path, array in zip(self._as_in_torch(shape.paths, output), output, strict=True):
            cotangent = (self.request.cotangents or {}).get(path)
            if cotangent is not None and cotangent.shape == array.shape:
                if jnp.iscomplexobj(array):
                    array = array.real + 0.5 * array.imag
                if jnp.issubdtype(array.dtype, jnp.floating):
                    wanted = jnp.asarray(cotangent, array.dtype)
                    total += ((array - wanted) ** 2).mean() if squared else (wanted * array).sum()
        return total

    def _as_in_torch(self, paths: list[str], output: list[Any]) -> list[str]:
        """Where these arrays are in torch's output: in order, as far as a tuple here is one with names there."""
        known = self.request.cotangents or {}
        floats = zip(paths, output, strict=True)
        own = [p for p, array in floats if p not in known and jnp.issubdtype(array.dtype, jnp.inexact)]
        others = [path for path in known if path not in paths]
        renamed = dict(zip(own, others, strict=True)) if len(own) == len(others) else {}
        return [renamed.get(path, path) for path in paths]


def for_each_form(function: Any, options: Options) -> Callable[..., Any]:
    """A function under ``nnx.jit``, compiled with options of XLA, anew where a call changes the structure."""
    known: dict[Any, Any] = {}

    def run(*arguments: Any) -> Any:
        arrays, structure = jax.tree.flatten(nnx.split(arguments))
        form = structure, tuple(map(jax.typeof, arrays))
        if form not in known:
            known[form] = function.lower(*arguments).compile(options)
        return known[form](*arguments)

    return run


def _with_nan(values: Any, shown: Any) -> Any:
    """The values, with NaN where the other has it."""
    if not jnp.issubdtype(values.dtype, jnp.inexact):
        return values
    return jnp.where(jnp.isnan(shown), jnp.asarray(jnp.nan, values.dtype), values)


def trained(path: Any, variable: Any) -> bool:
    """The nnx filter for what torch would train: parameters of a float or complex dtype."""
    value = variable.get_value() if isinstance(variable, nnx.Variable) else variable
    return isinstance(variable, nnx.Param) and jnp.issubdtype(getattr(value, "dtype", np.int32), jnp.inexact)


class OutputStructure:
    """The structure of an output whose arrays go through ``jit`` as a list."""

    def __init__(self) -> None:
        self.tree: Any = None
        self.paths: list[str] = []

    def take(self, output: Any) -> list[Any]:
        """The arrays of an output."""
        arrays: list[Any] = []

        def leaf(value: Any) -> Any:
            if isinstance(value, nnx.Variable):
                value = value.get_value()
            if not isinstance(value, jax.Array | np.ndarray | np.generic):
                return None
            arrays.append(jnp.asarray(value))
            return np.asarray(len(arrays) - 1)

        self.tree = plain(output, leaf)
        self.paths = [path for path, item in leaves(self.tree) if isinstance(item, np.ndarray)]
        return arrays

    def fill(self, arrays: list[Any]) -> Any:
        """The output again, as plain data."""
        return plain(self.tree, lambda v: to_array(arrays[int(v)]) if isinstance(v, np.ndarray) else None)


def _draws_so_far(model: Any) -> list[int]:
    """How often each random stream of a module was drawn from."""
    counts = nnx.state(model, nnx.RngCount) if isinstance(model, nnx.Module) else {}
    return [int(np.sum(count)) for count in jax.tree.leaves(counts)]
