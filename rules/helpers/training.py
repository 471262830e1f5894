"""What a training loop does to gradients and learning rates, with PyTorch's numbers."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


@functools.cache
def bound_jit(step: Callable[..., Any], /, *modules: Any, **static: Any) -> Callable[..., Any]:
    """A step compiled for modules and optimizers that stay the same objects: `bound_jit(step, model, optimizer)(x)`.

    They keep their structure and mode from the first call on. `nnx.jit` would look at all of their variables each time.
    """
    return nnx.jit_partial(functools.partial(step, **static), *modules, graph=False)


@functools.cache
def bound_jit_graph(step: Callable[..., Any], /, *modules: Any, **static: Any) -> Callable[..., Any]:
    """A step compiled for modules and optimizers that stay the same objects, and that may share variables.

    They keep their structure and mode from the first call on. `nnx.jit` would look at all of their variables each time.
    """
    return nnx.jit_partial(functools.partial(step, **static), *modules, graph=True, graph_updates=False)


def printed(values: Any) -> Any:
    """What a compiled function gives, when all that it prints is printed."""
    jax.effects_barrier()
    return values


# Calls a module, compiled once for each shape of its inputs.
forward = nnx.jit(lambda module, *inputs: module(*inputs), graph=False)


@functools.cache
def bound_forward(module: nnx.Module) -> Callable[..., Any]:
    """A module whose calls are compiled once for each shape of their inputs; it keeps its structure and mode."""
    return nnx.jit_partial(lambda module, *inputs: module(*inputs), module, graph=False)


# Calls a module that may share variables, compiled once for each shape of its inputs.
forward_graph = nnx.jit(lambda module, *inputs: module(*inputs))


@nnx.jit(static_argnames="method", graph=False)
def call_method(module: nnx.Module, method: str, *inputs: Any) -> Any:
    """Calls a method of a module, compiled once for each method and each shape of its inputs."""
    return getattr(module, method)(*inputs)


@nnx.jit(static_argnames="method")
def call_method_graph(module: nnx.Module, method: str, *inputs: Any) -> Any:
    """Calls a method of a module that may share variables, compiled once for each method and shape of its inputs."""
    return getattr(module, method)(*inputs)


def is_training(module: nnx.Module) -> bool:
    """Whether a module is in training mode: PyTorch's `training`.

    NNX keeps the mode where it makes a difference. A module without a flag of its own is in the mode of the parts that
    have one, and in training mode if none has.
    """

    def modes(part: nnx.Module) -> list[bool]:
        flags = (getattr(part, name, None) for name in ("deterministic", "use_running_average"))
        return [not flag for flag in flags if flag is not None]

    known = modes(module) or [mode for _, part in nnx.iter_modules(module) for mode in modes(part)]
    return any(known) or not known


def set_trainable(module: nnx.Module, trainable: bool) -> None:
    """Freezes the parameters of a module, or has them trained: PyTorch's `requires_grad_`, for `is_trainable`."""
    for _, variable in nnx.iter_graph(module):
        if isinstance(variable, nnx.Param):
            variable.set_metadata(trainable=trainable)


def is_trainable(path: Any, variable: Any) -> bool:
    """A filter of NNX: parameters that `set_trainable` hasn't frozen. An optimizer asks when it is made."""
    return isinstance(variable, nnx.Param) and variable.get_metadata("trainable", True)


def zero_gradients(module: nnx.Module) -> nnx.State:
    """Zeros in the shapes of a module's parameters, to add gradients to."""
    return jax.jit(optax.tree.zeros_like)(nnx.state(module, nnx.Param))


def zero_step(module: nnx.Module) -> dict[str, Any]:
    """Zeros in the shapes of a module's parameters, as arrays to add gradients to; to be compiled."""
    return optax.tree.zeros_like(nnx.to_pure_dict(nnx.state(module, nnx.Param)))


@nnx.jit(graph=False)
def polyak_update(target: nnx.Module, source: nnx.Module, step_size: Any) -> None:
    """Moves the parameters of `target` by a share `step_size` of the way to those of `source`."""
    new, old = nnx.state(source, nnx.Param), nnx.state(target, nnx.Param)
    nnx.update(target, optax.incremental_update(new, old, step_size))


def polyak_step(target: nnx.Module, source: nnx.Module, step_size: Any) -> None:
    """Moves the parameters of `target` by a share `step_size` of the way to those of `source`; to be compiled."""
    new, old = nnx.state(source, nnx.Param), nnx.state(target, nnx.Param)
    nnx.update(target, optax.incremental_update(new, old, step_size))


@nnx.jit(graph=False)
def apply_gradients(module: nnx.Module, optimizer: nnx.Optimizer, grads: nnx.State) -> None:
    """Updates a module's parameters by gradients that were computed before."""
    optimizer.update(module, grads)


@nnx.jit
def apply_gradients_graph(module: nnx.Module, optimizer: nnx.Optimizer, grads: nnx.State) -> None:
    """Updates the parameters of a module that may share variables by gradients that were computed before."""
    optimizer.update(module, grads)


def apply_step(module: nnx.Module, optimizer: nnx.Optimizer, grads: dict[str, Any]) -> None:
    """Updates a module's parameters by arrays that gradients were added up in; to be compiled."""
    state = nnx.state(module, nnx.Param)
    nnx.replace_by_pure_dict(state, grads)
    optimizer.update(module, state)


@jax.jit
def clip_grad_norm(grads: Any, max_norm: float) -> Any:
    """Gradients scaled so that their norm, taken over all of them together, is at most `max_norm`.

    Like `torch.nn.utils.clip_grad_norm_`, which divides by the norm plus 1e-6; optax.clip_by_global_norm doesn't.
    """
    scale = jnp.minimum(max_norm / (optax.tree.norm(grads) + 1e-6), 1.0)
    return jax.tree.map(lambda g: g * scale.astype(g.dtype), grads)


@jax.jit
def grad_norm(grads: Any) -> jax.Array:
    """The norm of all gradients together, as `torch.nn.utils.clip_grad_norm_` returns it (before clipping)."""
    return optax.tree.norm(grads)


def clip_grad_norm_of(grads: Any, max_norm: float, norm_type: float) -> Any:
    """Gradients scaled so that a norm of all of them together is at most `max_norm`; see `clip_grad_norm`."""
    scale = jnp.minimum(max_norm / (grad_norm_of(grads, norm_type) + 1e-6), 1.0)
    return jax.tree.map(lambda g: g * scale.astype(g.dtype), grads)


def grad_norm_of(grads: Any, norm_type: float) -> jax.Array:
    """The p-norm of all gradients together, p being `norm_type`, as `torch.nn.utils.clip_grad_norm_` returns it."""
    leaves = [jnp.abs(g) for g in jax.tree.leaves(grads)]
    if norm_type == float("inf"):
        return jnp.max(jnp.stack([jnp.max(g) for g in leaves]))
    return sum(jnp.sum(g**norm_type) for g in leaves) ** (1 / norm_type)


def for_each_parameter(init: Callable[..., dict[str, Any]], update: Callable[..., Any]) -> optax.GradientTransformation:
    """An optimizer that is said of one parameter, as PyTorch's are: its state at first, and one step.

    `init(p)` makes the state of a parameter, a dict; `update(p, grad, state)` gives the new parameter and its state.
    """

    def init_all(params: Any) -> dict[str, Any]:
        leaves, structure = jax.tree.flatten(params)
        states = [init(p) for p in leaves]
        names = states[0] if states else ()
        return {name: jax.tree.unflatten(structure, [state[name] for state in states]) for name in names}

    def update_all(grads: Any, state: dict[str, Any], params: Any = None) -> tuple[Any, dict[str, Any]]:
        leaves, structure = jax.tree.flatten(params)
        entries = {name: jax.tree.leaves(values) for name, values in state.items()}
        states = [{name: values[i] for name, values in entries.items()} for i in range(len(leaves))]
        stepped = [update(*each) for each in zip(leaves, jax.tree.leaves(grads), states, strict=True)]
        updates = jax.tree.unflatten(structure, [new - old for (new, _), old in zip(stepped, leaves, strict=True)])
        return updates, {name: jax.tree.unflatten(structure, [made[name] for _, made in stepped]) for name in state}

    return optax.GradientTransformation(init_all, update_all)


def for_each_parameter_given(
    init: Callable[..., dict[str, Any]], update: Callable[..., Any], of_all: Callable[..., Any]
) -> optax.GradientTransformation:
    """The same where `update(p, grad, state, value)` is also given what `of_all(grads)` makes of all gradients."""

    def update_all(grads: Any, state: dict[str, Any], params: Any = None) -> tuple[Any, dict[str, Any]]:
        value = of_all(jax.tree.leaves(grads))
        each = for_each_parameter(init, lambda p, grad, own: update(p, grad, own, value))
        return each.update(grads, state, params)

    return optax.GradientTransformation(for_each_parameter(init, update).init, update_all)


def set_hyperparameter(optimizer: nnx.Optimizer, name: str, value: Any, label: str | None = None) -> None:
    """Sets a hyperparameter that `optax.inject_hyperparams` keeps in the optimizer's state: `"learning_rate"`.

    Of all groups of an `optax.multi_transform`, or of the one with a label.
    """
    state = optimizer.opt_state if label is None else optimizer.opt_state.inner_states[label]
    parts = jax.tree.leaves(state, is_leaf=lambda part: hasattr(part, "hyperparams"))
    kept = [part.hyperparams[name] for part in parts if name in getattr(part, "hyperparams", ())]
    assert kept, f"the optimizer is made without optax.inject_hyperparams: its {name} can't be set"
    for held in kept:
        # one that began as a whole number is an integer
        held.set_value(jnp.asarray(value, jnp.result_type(held[...], float)))


class LRScheduler:
    """Sets an optimizer's learning rate from a schedule, one count further with every `step()`.

    `optax.inject_hyperparams` keeps the rate. The schedule is called in Python, so it may be any function of a number:
    `LRScheduler(optimizer, optax.exponential_decay(0.1, 30, 0.1, staircase=True))`.
    """

    def __init__(self, optimizer: nnx.Optimizer, schedule: Callable[[float], Any]):
        self.optimizer, self.schedule, self.last_epoch = optimizer, schedule, -1
        self.places = optax.tree.get_all_with_path(optimizer.opt_state, "learning_rate")
        self.step()

    def step(self, epoch: float | None = None) -> None:
        """Goes on to the next count (or to `epoch`)."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for _, held in self.places:
            self.rate = rate = self.schedule(self.last_epoch)
            held.set_value(jnp.asarray(rate, float))

    def get_last_lr(self) -> list[float]:
        """The learning rate in use, in a list, as PyTorch has one for each parameter group."""
        return [float(self.rate)]

    def state_dict(self) -> dict[str, float]:
        """What goes into a checkpoint: the count."""
        return {"last_epoch": self.last_epoch}

    def load_state_dict(self, state_dict: dict[str, float]) -> None:
        """Goes on to the count of a checkpoint."""
        self.step(state_dict["last_epoch"])


class MomentumLRScheduler(LRScheduler):
    """Sets one more hyperparameter from a schedule of its own: `momentum=` or, of Adam, `b1=`."""

    def __init__(self, optimizer: nnx.Optimizer, schedule: Callable[[float], Any], **other: Callable[[float], Any]):
        [(name, self.other)] = other.items()
        self.others = optax.tree.get_all_with_path(optimizer.opt_state, name)
        super().__init__(optimizer, schedule)

    def step(self, epoch: float | None = None) -> None:
        """Goes on to the next count (or to `epoch`)."""
        super().step(epoch)
        for _, held in self.others:
            held.set_value(jnp.asarray(self.other(self.last_epoch), float))


class GroupLRScheduler:
    """Sets the learning rate of each parameter group from a schedule of its own, one count further with every `step()`.

    `schedules` has the labels of the groups in the `optax.multi_transform` that the optimizer is made with.
    """

    def __init__(self, optimizer: nnx.Optimizer, schedules: dict[str, Callable[[float], Any]]):
        self.optimizer, self.schedules, self.last_epoch = optimizer, schedules, -1
        self.values = dict.fromkeys(schedules, 0.0)
        states = optimizer.opt_state.inner_states
        self.rates = {label: optax.tree.get_all_with_path(states[label], "learning_rate") for label in schedules}
        self.step()

    def step(self, epoch: float | None = None) -> None:
        """Goes on to the next count (or to `epoch`)."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for label, schedule in self.schedules.items():
            self.values[label] = schedule(self.last_epoch)
            for _, rate in self.rates[label]:
                rate.set_value(jnp.asarray(self.values[label], rate[...].dtype))

    def get_last_lr(self) -> list[float]:
        """The learning rates in use, one for each group."""
        return [float(value) for value in self.values.values()]

    def state_dict(self) -> dict[str, float]:
        """What goes into a checkpoint: the count."""
        return {"last_epoch": self.last_epoch}

    def load_state_dict(self, state_dict: dict[str, float]) -> None:
        """Goes on to the count of a checkpoint."""
        self.step(state_dict["last_epoch"])


class OwnLRScheduler:
    """Sets an optimizer's learning rate to what `get_lr` says, at each `step()`; to derive from.

    `get_lr` gives the rate, in a list, by `last_epoch`, the count of steps, and `base_lrs`, the rate that the optimizer
    was made with. `optax.inject_hyperparams` keeps it.
    """

    def __init__(self, optimizer: nnx.Optimizer, last_epoch: float = -1):
        self.optimizer, self.last_epoch = optimizer, last_epoch
        # 0.1 for the nearest float32
        self.base_lrs = [float(str(np.asarray(rate[...]))) for rate in self.rates()]
        assert self.base_lrs, "the optimizer is made without optax.inject_hyperparams: its learning_rate can't be set"
        self.step()

    def rates(self) -> list[nnx.Variable]:
        """Where the optimizer keeps its learning rate."""
        kept = optax.tree.get_all_with_path(self.optimizer.opt_state, "learning_rate")
        return [rate for _, rate in kept]

    def get_lr(self) -> list[float]:
        """The learning rate, in a list."""
        raise NotImplementedError

    def step(self, epoch: float | None = None) -> None:
        """Goes on to the next count (or to `epoch`)."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._last_lr = self.get_lr()
        for rate, value in zip(self.rates(), self._last_lr, strict=True):
            rate.set_value(jnp.asarray(value, jnp.result_type(rate[...], float)))

    def get_last_lr(self) -> list[float]:
        """The learning rate in use, in a list."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """What goes into a checkpoint: everything but the optimizer, which has a state of its own."""
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Sets what a checkpoint has."""
        vars(self).update(state_dict)


class ReduceLROnPlateau:
    """Multiplies an optimizer's learning rate by `factor` when a metric has stopped improving.

    As `torch.optim.lr_scheduler.ReduceLROnPlateau`; `optax.inject_hyperparams` keeps the learning rate.
    """

    def __init__(
        self,
        optimizer: nnx.Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ):
        self.optimizer, self.factor, self.patience, self.cooldown = optimizer, factor, patience, cooldown
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.min_lr, self.eps = min_lr, eps
        self.best = float("inf") if mode == "min" else -float("inf")
        self.num_bad_epochs, self.last_epoch = 0, 0
        if cooldown > 0:
            self.cooldown_counter = 0

    def step(self, metrics: Any) -> None:
        """Takes the metric of an epoch."""
        metric, margin = float(metrics), self.threshold if self.mode == "min" else -self.threshold
        self.last_epoch += 1
        self.num_bad_epochs += 1
        bound = self.best * (1 - margin) if self.threshold_mode == "rel" else self.best - margin
        if metric < bound if self.mode == "min" else metric > bound:
            self.best, self.num_bad_epochs = metric, 0
        if self.cooldown > 0 and self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self.num_bad_epochs = 0
            if self.cooldown > 0:
                self.cooldown_counter = self.cooldown
            rate = optax.tree.get(self.optimizer.opt_state, "learning_rate")
            new = rate.item() * self.factor
            if self.min_lr > 0:
                new = max(new, self.min_lr)
            if rate.item() - new > self.eps:
                rate.set_value(jnp.asarray(new, jnp.result_type(rate[...], float)))

    def state_dict(self) -> dict[str, Any]:
        """What goes into a checkpoint: everything but the optimizer, which has a state of its own."""
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Sets what a checkpoint has."""
        vars(self).update(state_dict)

    def get_last_lr(self) -> list[float]:
        """The learning rate in use, in a list, as PyTorch has one for each parameter group."""
        return [optax.tree.get(self.optimizer.opt_state, "learning_rate").item()]
