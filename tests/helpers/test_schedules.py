"""Schedules against torch.optim.lr_scheduler: every learning rate (and momentum) over a long horizon, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import optax
import pytest
import torch
from torch.optim import lr_scheduler

from t2j_lsp.rules.helpers.schedules import (
    cosine_annealing,
    cosine_warm_restarts,
    cyclic,
    multiply_schedules,
    one_cycle,
)

LR = 0.3
HORIZON = 45


def recorded(
    make: Callable[[torch.optim.Optimizer], Any], steps: int = HORIZON, adam: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """PyTorch's learning rate and momentum (or beta1) before each of ``steps`` updates."""
    weight = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer: torch.optim.Optimizer = (
        torch.optim.Adam([weight], lr=LR) if adam else torch.optim.SGD([weight], lr=LR, momentum=0.9)
    )
    scheduler = make(optimizer)
    rates, momenta = [], []
    for _ in range(steps):
        group = optimizer.param_groups[0]
        rates.append(group["lr"])
        momenta.append(group["betas"][0] if adam else group["momentum"])
        optimizer.step()
        scheduler.step()
    return np.array(rates), np.array(momenta)


def same_schedule(schedule: optax.Schedule, wanted: np.ndarray) -> None:
    """Compares under jit and with Python numbers."""
    compiled = jax.jit(schedule)
    np.testing.assert_allclose([float(compiled(t)) for t in range(len(wanted))], wanted, rtol=0, atol=1e-13)
    np.testing.assert_allclose([float(schedule(t)) for t in range(0, len(wanted), 7)], wanted[::7], rtol=0, atol=1e-13)


@pytest.mark.parametrize(("period", "minimum"), [(10, 0.0), (7, 0.05), (100, 0.0)])
def test_cosine_rises_again_after_its_period(period: int, minimum: float) -> None:
    wanted, _ = recorded(lambda o: lr_scheduler.CosineAnnealingLR(o, period, minimum))
    same_schedule(cosine_annealing(LR, period, minimum), wanted)


@pytest.mark.parametrize(("first", "factor", "minimum"), [(5, 1, 0.0), (3, 2, 0.01), (2, 3, 0.0)])
def test_warm_restarts(first: int, factor: int, minimum: float) -> None:
    wanted, _ = recorded(lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, first, factor, minimum))
    same_schedule(cosine_warm_restarts(LR, first, factor, minimum), wanted)


def test_warm_restarts_take_parts_of_epochs() -> None:
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=LR)
    scheduler = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 4)
    schedule = cosine_warm_restarts(LR, 4)
    for epoch in (0.25, 1.75, 3.5, 4.5, 9.25):
        optimizer.step()
        scheduler.step(epoch)
        np.testing.assert_allclose(float(schedule(epoch)), optimizer.param_groups[0]["lr"], atol=1e-13)


@pytest.mark.parametrize("anneal", ["cos", "linear"])
@pytest.mark.parametrize("three_phase", [False, True])
@pytest.mark.parametrize("adam", [False, True])
def test_one_cycle_of_rate_and_momentum(anneal: str, three_phase: bool, adam: bool) -> None:
    total = 40
    rates, momenta = recorded(
        lambda o: lr_scheduler.OneCycleLR(
            o, 0.9, total, pct_start=0.25, anneal_strategy=anneal, three_phase=three_phase, div_factor=5.0
        ),
        total,
        adam,
    )
    options = {"pct_start": 0.25, "anneal_strategy": anneal, "three_phase": three_phase}
    same_schedule(one_cycle(0.9 / 5.0, 0.9, 0.9 / 5.0 / 1e4, total, **options), rates)
    same_schedule(one_cycle(0.95, 0.85, 0.95, total, **options), momenta)


@pytest.mark.parametrize("mode", ["triangular", "triangular2", "exp_range"])
@pytest.mark.parametrize("down", [None, 3])
def test_cyclic_rate_and_momentum(mode: str, down: int | None) -> None:
    rates, momenta = recorded(lambda o: lr_scheduler.CyclicLR(o, 0.1, 0.7, 5, down, mode=mode, gamma=0.95))
    same_schedule(cyclic(0.1, 0.7, 5, down, mode, 0.95), rates)
    same_schedule(cyclic(0.9, 0.8, 5, down, mode, 0.95), momenta)


def test_chained_schedules_multiply() -> None:
    wanted, _ = recorded(
        lambda o: lr_scheduler.ChainedScheduler(
            [lr_scheduler.ConstantLR(o, 0.1, 4), lr_scheduler.ExponentialLR(o, 0.9), lr_scheduler.StepLR(o, 8, 0.5)]
        )
    )
    factors = [
        optax.piecewise_constant_schedule(0.1, {4: 1 / 0.1}),
        optax.exponential_decay(1.0, 1, 0.9),
        optax.exponential_decay(1.0, 8, 0.5, staircase=True),
    ]
    same_schedule(multiply_schedules([optax.constant_schedule(LR), *factors]), wanted)
