"""Gradient transformations with PyTorch's update rules, where optax has none or another one.

Each is one link of an `optax.chain`; `optax.scale_by_learning_rate` comes last.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from .names import torch_name


class DampenedTraceState(NamedTuple):
    """The momentum buffers, and how many updates were made."""

    count: jax.Array
    trace: Any


def dampened_trace(momentum: float, dampening: float) -> optax.GradientTransformation:
    """Momentum of `torch.optim.SGD` with dampening: `trace = momentum * trace + (1 - dampening) * gradient`.

    The first gradient is taken whole. optax.trace has no dampening.
    """

    def init(params: Any) -> DampenedTraceState:
        return DampenedTraceState(jnp.zeros([], jnp.int32), jax.tree.map(jnp.zeros_like, params))

    def update(updates: Any, state: DampenedTraceState, params: Any = None) -> tuple[Any, DampenedTraceState]:
        share = jnp.where(state.count == 0, 1.0, 1.0 - dampening)
        trace = jax.tree.map(lambda t, g: momentum * t + share.astype(g.dtype) * g, state.trace, updates)
        return trace, DampenedTraceState(state.count + 1, trace)

    return optax.GradientTransformation(init, update)


class AmsgradState(NamedTuple):
    """The number of updates, the moments, and the largest second moment so far."""

    count: jax.Array
    mu: Any
    nu: Any
    nu_max: Any


def scale_by_amsgrad(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> optax.GradientTransformation:
    """Adam with `amsgrad=True`: the maximum is taken over second moments before their bias is corrected.

    optax.amsgrad takes it over the corrected ones, which gives other updates.
    """

    def init(params: Any) -> AmsgradState:
        mu, nu, nu_max = (jax.tree.map(jnp.zeros_like, params) for _ in range(3))
        return AmsgradState(jnp.zeros([], jnp.int32), mu, nu, nu_max)

    def update(updates: Any, state: AmsgradState, params: Any = None) -> tuple[Any, AmsgradState]:
        count = state.count + 1
        mu = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.mu, updates)
        nu = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, state.nu, updates)
        nu_max = jax.tree.map(jnp.maximum, state.nu_max, nu)
        updates = jax.tree.map(
            lambda m, v: (m / (1 - b1**count) / (jnp.sqrt(v / (1 - b2**count)) + eps)).astype(m.dtype), mu, nu_max
        )
        return updates, AmsgradState(count, mu, nu, nu_max)

    return optax.GradientTransformation(init, update)


class AdagradState(NamedTuple):
    """The number of updates and the sums of squared gradients."""

    count: jax.Array
    total: Any


def scale_by_adagrad(
    lr_decay: float = 0.0, initial_accumulator_value: float = 0.0, eps: float = 1e-10
) -> optax.GradientTransformation:
    """`torch.optim.Adagrad`: gradients over the root of the sum of their squares, plus eps outside the root.

    optax.adagrad has eps inside the root. `lr_decay` divides update t (from 0) by `1 + t * lr_decay`.
    """

    def init(params: Any) -> AdagradState:
        total = jax.tree.map(lambda p: jnp.full_like(p, initial_accumulator_value), params)
        return AdagradState(jnp.zeros([], jnp.int32), total)

    def update(updates: Any, state: AdagradState, params: Any = None) -> tuple[Any, AdagradState]:
        total = jax.tree.map(lambda s, g: s + g * g, state.total, updates)
        updates = jax.tree.map(lambda g, s: (g / (jnp.sqrt(s) + eps)).astype(g.dtype), updates, total)
        if lr_decay:
            decay = 1 + state.count * lr_decay
            updates = jax.tree.map(lambda u: (u / decay).astype(u.dtype), updates)
        return updates, AdagradState(state.count + 1, total)

    return optax.GradientTransformation(init, update)


class NadamState(NamedTuple):
    """The number of updates, the product of the momentum coefficients so far, and the moments."""

    count: jax.Array
    mu_product: jax.Array
    mu: Any
    nu: Any


def scale_by_nadam(
    b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, momentum_decay: float = 4e-3
) -> optax.GradientTransformation:
    """`torch.optim.NAdam`: Adam with Nesterov momentum whose coefficient grows with the updates.

    Update t uses `b1 * (1 - 0.96 ** (t * momentum_decay) / 2)`; optax.nadam has a constant b1.
    """

    def init(params: Any) -> NadamState:
        mu, nu = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
        return NadamState(jnp.zeros([], jnp.int32), jnp.ones([]), mu, nu)

    def update(updates: Any, state: NadamState, params: Any = None) -> tuple[Any, NadamState]:
        count = state.count + 1
        now, following = (b1 * (1 - 0.5 * 0.96 ** (t * momentum_decay)) for t in (count, count + 1))
        product = state.mu_product * now
        mu = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.mu, updates)
        nu = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, state.nu, updates)

        def leaf(g: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
            direction = (1 - now) / (1 - product) * g + following / (1 - product * following) * m
            return (direction / (jnp.sqrt(v / (1 - b2**count)) + eps)).astype(g.dtype)

        return jax.tree.map(leaf, updates, mu, nu), NadamState(count, product, mu, nu)

    return optax.GradientTransformation(init, update)


class RadamState(NamedTuple):
    """The number of updates and the moments."""

    count: jax.Array
    mu: Any
    nu: Any


def scale_by_radam(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> optax.GradientTransformation:
    """`torch.optim.RAdam`: Adam whose step is rectified once its variance is tractable (rho > 5), else plain momentum.

    optax.radam adds eps after the second moment's bias correction, PyTorch before it.
    """
    rho_inf = 2 / (1 - b2) - 1

    def init(params: Any) -> RadamState:
        mu, nu = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
        return RadamState(jnp.zeros([], jnp.int32), mu, nu)

    def update(updates: Any, state: RadamState, params: Any = None) -> tuple[Any, RadamState]:
        count = state.count + 1
        mu = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.mu, updates)
        nu = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, state.nu, updates)
        correction = 1 - b2**count
        rho = rho_inf - 2 * count * b2**count / correction
        ratio = (rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)
        scale = jnp.sqrt(jnp.where(rho > 5, ratio * correction, 1))

        def leaf(m: jax.Array, v: jax.Array) -> jax.Array:
            m = m / (1 - b1**count)
            return jnp.where(rho > 5, scale * m / (jnp.sqrt(v) + eps), m).astype(v.dtype)

        return jax.tree.map(leaf, mu, nu), RadamState(count, mu, nu)

    return optax.GradientTransformation(init, update)


class RpropState(NamedTuple):
    """The size of each parameter's step, and the gradients before this one."""

    step_sizes: Any
    previous: Any


def rprop(
    learning_rate: float,
    eta_minus: float = 0.5,
    eta_plus: float = 1.2,
    min_step_size: float = 1e-6,
    max_step_size: float = 50.0,
) -> optax.GradientTransformation:
    """`torch.optim.Rprop`: steps of a size that grows while a gradient keeps its sign, and shrinks when it changes.

    optax.rprop gives the update of the step before.
    """

    def init(params: Any) -> RpropState:
        sizes = jax.tree.map(lambda p: jnp.full_like(p, learning_rate), params)
        return RpropState(sizes, jax.tree.map(jnp.zeros_like, params))

    def update(updates: Any, state: RpropState, params: Any = None) -> tuple[Any, RpropState]:
        signs = jax.tree.map(lambda g, p: jnp.sign(g * p), updates, state.previous)
        sizes = jax.tree.map(
            lambda size, s: jnp.clip(
                size * jnp.where(s > 0, eta_plus, jnp.where(s < 0, eta_minus, 1)), min_step_size, max_step_size
            ),
            state.step_sizes,
            signs,
        )
        grads = jax.tree.map(lambda g, s: jnp.where(s < 0, 0, g), updates, signs)
        return jax.tree.map(lambda g, size: -jnp.sign(g) * size, grads, sizes), RpropState(sizes, grads)

    return optax.GradientTransformation(init, update)


class AsgdState(NamedTuple):
    """The number of updates, and the average of the parameters."""

    count: jax.Array
    average: Any


def asgd(
    learning_rate: float, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6
) -> optax.GradientTransformation:
    """`torch.optim.ASGD`: SGD whose step shrinks, and the average of the parameters from update `t0` on in its state.

    Update t (from 0) has the step `learning_rate / (1 + lambd * learning_rate * t) ** alpha`.
    """

    def init(params: Any) -> AsgdState:
        return AsgdState(jnp.zeros([], jnp.int32), jax.tree.map(jnp.zeros_like, params))

    def update(updates: Any, state: AsgdState, params: Any) -> tuple[Any, AsgdState]:
        step = learning_rate / (1 + lambd * learning_rate * state.count) ** alpha
        updates = jax.tree.map(lambda g, p: -(step * (g + lambd * p)).astype(g.dtype), updates, params)
        share = 1 / jnp.maximum(1, state.count - t0)
        average = jax.tree.map(
            lambda a, p, u: a + ((p + u - a) * share).astype(a.dtype), state.average, params, updates
        )
        return updates, AsgdState(state.count + 1, average)

    return optax.GradientTransformation(init, update)


class AdafactorState(NamedTuple):
    """The number of updates, and running means of squared gradients: of rows and columns, or of every element."""

    count: jax.Array
    rows: Any
    columns: Any


def adafactor(
    learning_rate: float,
    beta2_decay: float = -0.8,
    eps1: float | None = None,
    eps2: float = 1e-3,
    d: float = 1.0,
    weight_decay: float = 0.0,
) -> optax.GradientTransformation:
    """`torch.optim.Adafactor`, for parameters of at most two axes: of a kernel with more PyTorch factors two others.

    optax.adafactor adds eps to the squares, has another decay, and clips and scales otherwise.
    """

    def mean_of_squares(g: jax.Array, axis: int) -> jax.Array:
        if g.ndim > 2:
            raise ValueError(f"Adafactor factors other axes of PyTorch's layout than of an array {g.shape}")
        return jnp.mean(jnp.square(g), axis, keepdims=True) if g.ndim == 2 else jnp.square(g)

    def init(params: Any) -> AdafactorState:
        rows = jax.tree.map(lambda p: mean_of_squares(jnp.zeros_like(p), -1), params)
        columns = jax.tree.map(lambda p: mean_of_squares(jnp.zeros_like(p), -2), params)
        return AdafactorState(jnp.zeros([], jnp.int32), rows, columns)

    def update(updates: Any, state: AdafactorState, params: Any) -> tuple[Any, AdafactorState]:
        count = state.count + 1
        share = count**beta2_decay
        rate = jnp.minimum(learning_rate, count**-0.5)

        def averaged(axis: int, means: Any) -> Any:
            return jax.tree.map(lambda m, g: m + share * (mean_of_squares(g, axis) - m), means, updates)

        def leaf(g: jax.Array, p: jax.Array, row: jax.Array, column: jax.Array) -> jax.Array:
            eps = jnp.finfo(p.dtype).eps if eps1 is None else eps1
            mean = jnp.maximum(jnp.mean(row, axis=-2, keepdims=True), eps) if g.ndim == 2 else 1
            variance = row * column / mean if g.ndim == 2 else row
            direction = g / jnp.sqrt(jnp.maximum(variance, eps * eps))
            scale = jnp.maximum(eps2, jnp.sqrt(jnp.mean(jnp.square(p)))) * rate
            clip = jnp.maximum(1, jnp.sqrt(jnp.mean(jnp.square(direction))) / d)
            return (-scale / clip * direction - learning_rate * weight_decay * p).astype(p.dtype)

        rows, columns = averaged(-1, state.rows), averaged(-2, state.columns)
        return jax.tree.map(leaf, updates, params, rows, columns), AdafactorState(count, rows, columns)

    return optax.GradientTransformation(init, update)


def label_parameters(label: Callable[[str, jax.Array], str], module: nnx.Module | None = None) -> Callable[[Any], Any]:
    """Labels for `optax.multi_transform`, or a mask: calls `label(name, parameter)` for every parameter.

    Args:
      label: is given the path of the nnx.Param in its module, joined by dots, `"layers.0.kernel"`, and the array.
      module: the module of these parameters, where the name is to be PyTorch's: `"0.weight"`.
    """

    def leaf(path: tuple[Any, ...], parameter: jax.Array) -> str:
        path = tuple(part for part in path if not hasattr(part, "name"))  # that of a variable's value has one
        if module is None:
            return label(jax.tree_util.keystr(path, simple=True, separator="."), parameter)
        return label(torch_name(module, [getattr(part, "key", getattr(part, "idx", "")) for part in path]), parameter)

    return functools.partial(jax.tree.map_with_path, leaf)
