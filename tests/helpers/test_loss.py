"""Losses of numbers against PyTorch: equal values, values on a bound, every reduction."""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from t2j_lsp.rules.helpers import loss
from tests.helpers.compare import array, same_function

same = partial(same_function, jit=True)
REDUCTIONS = ("mean", "sum", "none")


def with_ties(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of quarters: equal in places, and apart by exactly the bounds used below in others."""
    return np.round(4 * array(*shape)) / 4, np.round(4 * array(*shape, seed=1)) / 4


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_mean_squared_and_absolute_errors(reduction: str) -> None:
    for name in ("mse_loss", "l1_loss"):
        options = dict(reduction=reduction)
        same(partial(getattr(loss, name), **options), partial(getattr(F, name), **options), *with_ties(4, 5))


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_weights_of_elements(name: str, reduction: str) -> None:
    def call(library: Any) -> Any:
        return lambda x, y, w: getattr(library, name)(x, y, reduction=reduction, weight=w)

    same(call(loss), call(F), *with_ties(4, 5), array(4, 5, low=0.1))


@pytest.mark.parametrize("bound", [0.5, 1.0, 0.0])
def test_smooth_l1_and_huber_loss_at_their_bounds(bound: float) -> None:
    x, y = with_ties(4, 6)
    same(lambda x, y: loss.smooth_l1_loss(x, y, beta=bound), lambda x, y: F.smooth_l1_loss(x, y, beta=bound), x, y)
    delta = bound or 0.25
    same(lambda x, y: loss.huber_loss(x, y, "sum", delta), lambda x, y: F.huber_loss(x, y, "sum", delta), x, y)


@pytest.mark.filterwarnings("ignore:reduction:UserWarning")
@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div(reduction: str, log_target: bool) -> None:
    options: dict[str, Any] = dict(reduction=reduction, log_target=log_target)
    target = array(3, 4, low=-2.0, high=0.0) if log_target else array(3, 4, low=0.1, high=1.0)
    same(partial(loss.kl_div, **options), partial(F.kl_div, **options), array(3, 4, high=0.0), target)


def test_kl_div_of_a_zero_probability_is_zero() -> None:
    target = np.array([0.0, 1.0, 0.0])
    same(
        lambda x: loss.kl_div(x, jnp.asarray(target), "sum"),
        lambda x: F.kl_div(x, torch.from_numpy(target), reduction="sum"),
        array(3, high=0.0),
    )


@pytest.mark.parametrize(("full", "reduction"), [(False, "mean"), (True, "sum"), (True, "none")])
@pytest.mark.parametrize("shape", [(3, 4), (3,), (3, 1)])
def test_gaussian_nll_loss(full: bool, reduction: str, shape: tuple[int, ...]) -> None:
    options: dict[str, Any] = dict(full=full, reduction=reduction, eps=0.5)
    variance = array(*shape, low=0.0)  # below and above eps
    function, reference = partial(loss.gaussian_nll_loss, **options), partial(F.gaussian_nll_loss, **options)
    same(function, reference, array(3, 4), array(3, 4, seed=1), variance)


def test_gaussian_nll_loss_takes_a_number_for_the_variance() -> None:
    inputs = (array(3, 4), array(3, 4, seed=1))
    same_function(lambda x, y: loss.gaussian_nll_loss(x, y, 2.0), lambda x, y: F.gaussian_nll_loss(x, y, 2.0), *inputs)


@pytest.mark.parametrize("log_input", [True, False])
@pytest.mark.parametrize("full", [True, False])
def test_poisson_nll_loss(log_input: bool, full: bool) -> None:
    options: dict[str, Any] = dict(log_input=log_input, full=full, reduction="none")
    counts = np.broadcast_to([0.0, 1.0, 2.0, 5.0], (3, 4)).copy()
    same(
        lambda x: loss.poisson_nll_loss(x, jnp.asarray(counts), **options),
        lambda x: F.poisson_nll_loss(x, torch.from_numpy(counts), **options),
        array(3, 4, low=0.1),
    )


def test_an_unknown_reduction_is_an_error() -> None:
    with pytest.raises(KeyError, match="average"):
        loss.mse_loss(jnp.zeros(2), jnp.zeros(2), "average")
