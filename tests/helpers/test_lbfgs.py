"""LBFGS against torch.optim.LBFGS: every loss that is evaluated, and the parameters after each step, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp.rules.helpers.lbfgs import LBFGS

from .compare import array, close

START = array(6, seed=3)
ROUNDED = 1e-10
"""Where the start differs in its last digit, PyTorch's own parameters differ by up to 2.5e-11."""


def rosenbrock(x: Any) -> Any:
    """A valley that bends: line searches have to zoom."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def bowl(x: Any) -> Any:
    """Curved by other amounts along each axis."""
    return (x**4).sum() + 3 * (x[0] * x[1]) ** 2 + (x - 0.5).sum() * 1e-2


def rugged(x: Any) -> Any:
    """Several valleys, so that brackets are narrowed from both ends and by their edges."""
    return (x**2 * (x**2 - 1) ** 2 * (x**2 - 4) ** 2).sum() / 50


def well(x: Any) -> Any:
    """Flat but for a narrow well, so that trials come too near to the ends of the bracket."""
    return (x**2).sum() / 100 - (1 / (1 + 50 * (x - 0.3) ** 2)).sum()


def plain(x: Any) -> Any:
    """A slope that a step of 1 overshoots by little."""
    return ((x - 1) ** 2).sum()


class Held(nnx.Module):
    """Two parameters that are one vector."""

    def __init__(self) -> None:
        self.first = nnx.Param(jnp.asarray(START[:2]))
        self.rest = nnx.Param(jnp.asarray(START[2:]))

    def __call__(self) -> Any:
        return jnp.concatenate([self.first[...], self.rest[...]])


def run_torch(loss_of: Callable[[Any], Any], steps: int, options: dict[str, Any]) -> tuple[list[float], np.ndarray]:
    tensors = [torch.from_numpy(START[:2].copy()), torch.from_numpy(START[2:].copy())]
    for tensor in tensors:
        tensor.requires_grad_()
    optimizer = torch.optim.LBFGS(tensors, **options)
    losses: list[float] = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = loss_of(torch.cat(tensors))
        loss.backward()  # type: ignore[no-untyped-call]
        losses.append(loss.item())
        return loss

    for _ in range(steps):
        losses.append(optimizer.step(closure).item())  # type: ignore[no-untyped-call]
    return losses, torch.cat(tensors).detach().numpy()


def run_jax(loss_of: Callable[[Any], Any], steps: int, options: dict[str, Any]) -> tuple[list[float], np.ndarray]:
    held = Held()
    optimizer = LBFGS(held, **options)
    losses: list[float] = []

    def closure() -> tuple[Any, Any]:
        loss, grads = nnx.value_and_grad(lambda held: loss_of(held()))(held)
        losses.append(loss.item())
        return loss, grads

    for _ in range(steps):
        losses.append(float(optimizer.step(closure)))
    return losses, np.asarray(held())


OPTIONS: list[dict[str, Any]] = [
    {},
    {"max_iter": 6, "history_size": 2},
    {"max_eval": 5},
    {"tolerance_grad": 1e-2, "max_iter": 4},
    {"tolerance_change": 1e-3},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("loss_of", "rate"), [(rosenbrock, 1e-3), (bowl, 0.1), (plain, 1.0), (bowl, 2.0)])
def test_steps_of_a_fixed_length(loss_of: Callable[[Any], Any], rate: float, options: dict[str, Any]) -> None:
    same_course(loss_of, rate, options)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(
    ("loss_of", "rate"), [(rosenbrock, 1e-3), (bowl, 0.1), (bowl, 2.0), (rugged, 5.0), (well, 0.5)]
)
def test_line_searches(loss_of: Callable[[Any], Any], rate: float, options: dict[str, Any]) -> None:
    same_course(loss_of, rate, {**options, "line_search_fn": "strong_wolfe"})


def same_course(loss_of: Callable[[Any], Any], rate: float, options: dict[str, Any]) -> None:
    losses, params = run_jax(loss_of, 2, {"learning_rate": rate, **options})
    want, want_params = run_torch(loss_of, 2, {"lr": rate, **options})
    assert len(losses) == len(want)
    close(np.array(losses), np.array(want), "losses")
    close(params, want_params, "parameters", ROUNDED)
