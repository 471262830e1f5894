"""Trains a converted module with the optimizer, the schedule and the loss of its own file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax  # type: ignore[import-untyped]
from flax import nnx

from t2j_lsp.check.arguments.recipe import Recipe
from t2j_lsp.check.inputs import METRICS, OWN, OWN_TRAINING, PULLS, PUSH
from t2j_lsp.check.messages import JaxTrained, TrainingReference
from t2j_lsp.check.program.digest import digest
from t2j_lsp.check.program.marks import RAN
from t2j_lsp.check.requests import JaxTrainRequest
from t2j_lsp.check.workers.training_objects import made

from .build import program, to_array, to_jax
from .pairing import names_of, value_of
from .session import OutputStructure, ProgramSession


def train(request: JaxTrainRequest) -> JaxTrained:
    """What the torch side observed, computed here."""
    reference = request.reference
    try:
        with program(request) as (module, target):
            session = ProgramSession(replace(request, tapes=reference.tapes), vars(module), target)
            session.phase("construct", "", session.construct)
            if not isinstance(session.model, nnx.Module):
                return JaxTrained(problem="it is no module")
            problems: list[tuple[str, bool]] = []

            def work() -> dict[str, Any]:
                try:
                    return Training(session, request.recipe, reference).run(request.steps)
                except NotConverted as error:
                    problems.append((str(error), isinstance(error, NoLoss)))
                    return {}

            session.phase(OWN_TRAINING, "train", work)
            problem, loss = problems[0] if problems else (None, False)
            observed = session.observed.get(OWN_TRAINING, {})
            return JaxTrained(observed, session.errors.get(OWN_TRAINING), problem, loss, RAN.reported())
    except SystemExit as error:
        return JaxTrained(problem=f"SystemExit: {error}")


class NotConverted(Exception):
    """The file's own optimizer can't be used here, which says nothing about the conversion."""


class NoLoss(NotConverted):
    """The file's own loss can't be used here: it may give one number for each example, say."""


def _widen_counts(optimizer: nnx.Optimizer[Any]) -> None:
    """Makes the counts of updates 64 bits wide: optax's schedules of a narrow count are float32."""
    for _, variable in nnx.iter_graph(optimizer):
        if isinstance(variable, nnx.Variable) and getattr(variable.get_value(), "dtype", None) == np.int32:
            variable.set_value(variable.get_value().astype(np.int64))


class Training:
    """What a recipe made for the session's model; ``reference`` is what the torch side says of its own run."""

    def __init__(self, session: ProgramSession, recipe: Recipe, reference: TrainingReference) -> None:
        self.session = session
        self.reference = reference
        session.take(reference.inputs)
        self.model = session.fresh(train=True)
        try:
            optimizer = made(recipe, self.model, session.namespace, session.wide, rngs=nnx.Rngs(0))
        except (NameError, ImportError) as error:
            if getattr(error, "name", None) in ("jax", "jnp", "nnx", "optax"):
                raise  # It would fail in the program, too.
            raise NotConverted(f"{type(error).__name__}: {error}") from error
        self.optimizer: Any = optimizer["optimizer"]
        self.scheduler: Any = optimizer.get("scheduler")
        self.criterion: Any = optimizer.get("criterion")
        if isinstance(self.optimizer, optax.GradientTransformation):
            self.optimizer = nnx.Optimizer(self.model, self.optimizer, wrt=nnx.Param)
        if not isinstance(self.optimizer, nnx.Optimizer):
            raise NotConverted(f"its optimizer is a {type(self.optimizer).__name__}, and no nnx.Optimizer")
        if session.wide:
            _widen_counts(self.optimizer)
        self.recipe = recipe
        self.target = None if reference.target is None else to_jax(reference.target, session.wide)
        if self.scheduler is not None and not hasattr(self.scheduler, "step") and not reference.each_update:
            raise NotConverted("torch's schedule goes on once an epoch, and its own with every update")
        if self.target is not None and self.criterion is None:
            raise NoLoss("it has no loss function of the same name")

    def part(self, whole: Any) -> Any:
        """What the optimizer trains, of the module or of its gradients."""
        text, name = self.recipe.trained, self.recipe.names["model"]
        return whole if text in ("", name) else eval(text, {name: whole})

    def update(self, model: Any, optimizer: Any, grads: Any) -> None:
        """One update of what the optimizer trains."""
        alone = isinstance(optimizer, nnx.ModelAndOptimizer)
        optimizer.update(*([] if alone else [self.part(model)]), self.part(grads))

    def loss(self, output: Any, shape: OutputStructure) -> Any:
        """The file's loss, or the distance from torch's cotangents."""
        if self.target is not None:
            try:
                loss = self.criterion(output, self.target)
            except Exception as error:
                if "argument" in str(error):
                    raise
                raise NoLoss(f"its loss does not take what torch's does: {error}") from error
            if np.ndim(loss):
                raise NoLoss("its loss is not one number")
            return loss
        return self.session.loss(shape, shape.take(output), squared=True)

    def run(self, count: int) -> dict[str, Any]:
        """``count`` updates under ``jit``, and the schedule after them."""
        session, shape = self.session, OutputStructure()

        def update(model: Any, optimizer: Any, pulled: tuple[list[Any], float]) -> Any:
            arrays, pull = pulled

            def loss(model: Any) -> Any:
                value = self.loss(session.call(model, arrays), shape)
                return pull * value, value

            wrt = nnx.DiffState(0, optimizer.wrt)
            (_, value), grads = nnx.value_and_grad(loss, argnums=wrt, has_aux=True)(model)
            self.update(model, optimizer, grads)
            return value

        run = session.compiled_update(update)
        values: dict[str, Any] = {}
        for step in range(1, count + 1):
            if (rate := self.rate()) is not None:
                values[f"step {step} {OWN}: learning rate"] = rate
            momenta = self.hyperparameters("momentum") or self.hyperparameters("b1")
            if self.reference.cycled and momenta:
                values[f"step {step} {OWN}: momentum"] = np.asarray(momenta[0])
            pull = PULLS[(step - 1) % len(PULLS)] if self.reference.clipped else 1.0
            value = run(self.model, self.optimizer, (session.arrays, pull))
            if step == 1 and self.target is not None:
                values["train loss"] = to_array(value)
            values[f"step {step} {OWN}: loss"] = to_array(value)
            self.step(float(value))
        for name, entry in names_of(self.model).items():
            if entry.kind == "parameter":
                trained = np.where(self.reference.noise.get(name, False), 0, value_of(entry))
                values[f"after {count} steps {OWN}: parameter {name}"] = digest(trained)
        values |= session.buffers(f"after {count} steps {OWN}: buffer", self.model)
        followed = self.reference.followed
        if self.reference.course and not hasattr(self.scheduler, "step"):
            values[f"after {count} steps {OWN}: course of {followed}"] = self.course(followed)
        later = self.rates_later()
        if later is not None:
            values[f"after {count} steps {OWN}: learning rates"] = later
        return values

    def step(self, loss: float) -> None:
        """One count further, where the schedule is not inside the optimizer."""
        if hasattr(self.scheduler, "step"):
            self.scheduler.step(*((loss,) if self.reference.metric else ()))

    def rate(self) -> Any:
        """The least and the largest learning rate, where the optimizer's state or a schedule tells."""
        every = self.hyperparameters("learning_rate")
        telling = every and (self.reference.uniform or len(every) > 1)
        return np.asarray([min(every), max(every)]) if telling else None

    def hyperparameters(self, name: str) -> list[float]:
        """The values that the optimizer's state keeps under a name, where `optax.inject_hyperparams` put them.

        None where a schedule gives them: the state then holds those of the update before.
        """
        rates = [value for _, value in optax.tree.get_all_with_path(self.optimizer.opt_state, name)]
        numbers = [v for v in rates if isinstance(v, nnx.Variable) and np.ndim(v[...]) == 0]
        return [float(v[...]) for v in numbers] if len(numbers) == len(rates) else []

    def course(self, followed: str) -> Any:
        """The mean of a parameter as the optimizer goes on under gradients that are all the same."""
        entry = names_of(self.model)[followed]

        def push(model: Any, optimizer: Any, arrays: list[Any]) -> None:
            grads = jax.tree.map(lambda p: jnp.full_like(p, PUSH), nnx.state(model, optimizer.wrt))
            self.update(model, optimizer, grads)

        run = nnx.jit(push)
        courses = []
        for _ in range(self.reference.course):
            run(self.model, self.optimizer, [])
            courses.append(float(np.mean(value_of(entry))))
        return np.asarray(courses)

    def rates_later(self) -> Any:
        """As many further learning rates as torch gave; None where there is no telling."""
        rates = []
        for number in range(self.reference.counts):
            if not hasattr(self.scheduler, "step"):
                return None
            self.step(METRICS[number] if self.reference.metric else 0.0)
            rates.append(self.rate())
        return np.asarray(rates).reshape(-1, 2) if rates and rates[0] is not None else None
