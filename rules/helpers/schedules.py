"""Learning rates as functions of the number of updates (or epochs), where optax has none with PyTorch's values.

Each returns an `optax.Schedule`: a function of a count, a Python number or an array, that also runs under jit.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import optax


def cosine_annealing(value: float, T_max: float, eta_min: float = 0.0) -> optax.Schedule:
    """`torch.optim.lr_scheduler.CosineAnnealingLR`: down to the minimum in `T_max` counts, and up again after that.

    optax.cosine_decay_schedule stays at the minimum.
    """
    if eta_min == 0:
        return jax.jit(lambda count: value * (1 + jnp.cos(jnp.pi * count / T_max)) / 2)
    return jax.jit(lambda count: eta_min + (value - eta_min) * (1 + jnp.cos(jnp.pi * count / T_max)) / 2)


def cosine_warm_restarts(value: float, T_0: int, T_mult: int = 1, eta_min: float = 0.0) -> optax.Schedule:
    """`torch.optim.lr_scheduler.CosineAnnealingWarmRestarts`: cosine periods of T_0, T_0 * T_mult, ... counts."""
    lengths = T_0 * float(T_mult) ** np.arange(64)
    starts = np.cumsum(lengths) - lengths

    def schedule(count: float | jax.Array) -> jax.Array:
        if T_mult == 1:
            part = count % T_0 / T_0
        else:
            period = jnp.searchsorted(jnp.asarray(starts), count, side="right") - 1
            part = (count - jnp.asarray(starts)[period]) / jnp.asarray(lengths)[period]
        return eta_min + (value - eta_min) * (1 + jnp.cos(jnp.pi * part)) / 2

    return jax.jit(schedule)


def one_cycle(
    initial: float,
    peak: float,
    final: float,
    total_steps: int,
    pct_start: float = 0.3,
    anneal_strategy: str = "cos",
    three_phase: bool = False,
) -> optax.Schedule:
    """`torch.optim.lr_scheduler.OneCycleLR`: from `initial` to `peak` to `final` within `total_steps` counts.

    The first phase takes `pct_start` of them; with `three_phase` a second one of that length leads back to `initial`.
    """
    top, last = pct_start * total_steps - 1, total_steps - 1

    def anneal(start: float, end: float, part: float | jax.Array) -> jax.Array:
        if anneal_strategy == "linear":
            return start + (end - start) * part
        return end + (start - end) / 2 * (1 + jnp.cos(jnp.pi * part))

    def schedule(count: float | jax.Array) -> jax.Array:
        rise = anneal(initial, peak, count / top)
        if three_phase:
            fall, back = anneal(peak, initial, (count - top) / top), 2 * top
            end = anneal(initial, final, (count - back) / (last - back))
            return jnp.where(count <= top, rise, jnp.where(count <= back, fall, end))
        fall = anneal(peak, final, (count - top) / (last - top))
        return jnp.where(count <= top, rise, fall)

    return jax.jit(schedule)


def cyclic(
    base: float,
    peak: float,
    step_size_up: float = 2000,
    step_size_down: float | None = None,
    mode: str = "triangular",
    gamma: float = 1.0,
) -> optax.Schedule:
    """`torch.optim.lr_scheduler.CyclicLR`: triangles between `base` and `peak`.

    Their height stays (`triangular`), halves with each cycle (`triangular2`) or shrinks by `gamma` with each count
    (`exp_range`).
    """
    size = step_size_up + (step_size_up if step_size_down is None else step_size_down)
    ratio = step_size_up / size

    def schedule(count: float | jax.Array) -> jax.Array:
        cycle = jnp.floor(1 + count / size)
        part = 1 + count / size - cycle
        height = (peak - base) * jnp.where(part <= ratio, part / ratio, (part - 1) / (ratio - 1))
        if mode == "triangular2":
            return base + height / 2 ** (cycle - 1)
        return base + height * (gamma**count if mode == "exp_range" else 1.0)

    return jax.jit(schedule)


def multiply_schedules(schedules: Sequence[optax.Schedule]) -> optax.Schedule:
    """The product of schedules, as `torch.optim.lr_scheduler.ChainedScheduler` combines factors."""

    def schedule(count: float | jax.Array) -> jax.Array:
        return math.prod(factor(count) for factor in schedules)

    return schedule
