"""Losses of class scores against PyTorch: ignored labels, class weights, axes, saturated probabilities."""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from t2j_lsp.rules.helpers import loss_classes
from tests.helpers.compare import array, same_function

same = partial(same_function, jit=True)
REDUCTIONS = ("mean", "sum", "none")
WEIGHT = array(4, low=0.2)


def labels(*shape: int, ignore: int = -100) -> np.ndarray:
    """Labels of four classes, repeated ones and ignored ones among them."""
    result = np.random.default_rng(0).integers(0, 4, shape)
    result.flat[0] = ignore
    return result


def compare(name: str, *inputs: Any, weight: np.ndarray | None = None, jit: bool = True, **options: Any) -> None:
    """Compares a loss, its class weights given as a constant of each library."""
    jax_side, torch_side = dict(options), dict(options)
    if weight is not None:
        jax_side["weight"], torch_side["weight"] = jnp.asarray(weight), torch.from_numpy(weight)
    same_function(
        partial(getattr(loss_classes, name), **jax_side), partial(getattr(F, name), **torch_side), *inputs, jit=jit
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_cross_entropy_of_indices(reduction: str, weight: np.ndarray | None, smoothing: float) -> None:
    options: dict[str, Any] = dict(reduction=reduction, label_smoothing=smoothing)
    compare("cross_entropy", array(5, 4), labels(5), weight=weight, **options)


def test_cross_entropy_with_classes_on_axis_1_or_without_a_batch() -> None:
    compare("cross_entropy", array(2, 4, 3, 5), labels(2, 3, 5, ignore=2), weight=WEIGHT, ignore_index=2)
    compare("cross_entropy", array(4), np.array(3), label_smoothing=0.1, jit=False)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
def test_cross_entropy_of_probabilities(reduction: str, weight: np.ndarray | None) -> None:
    target = array(3, 4, 2, low=0.0, seed=1)
    compare("cross_entropy", array(3, 4, 2), target, weight=weight, reduction=reduction, label_smoothing=0.2)
    compare("cross_entropy", array(4), array(4, low=0.0, seed=1), weight=weight, reduction=reduction)


def test_cross_entropy_of_minus_infinity_and_of_ignored_labels_only() -> None:
    logits = array(3, 4)
    logits[:, 2] = -np.inf
    compare("cross_entropy", logits, np.array([0, 1, 3]))
    compare("cross_entropy", array(2, 4), np.full(2, -100))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nll_loss(reduction: str) -> None:
    compare("nll_loss", array(3, 4, 2), labels(3, 2), weight=WEIGHT, reduction=reduction)
    compare("nll_loss", array(4), np.array(1), reduction=reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_cross_entropy_of_saturated_probabilities(reduction: str) -> None:
    probs = np.array([[0.0, 0.0, 1.0, 1.0], [1e-14, 0.3, 1 - 1e-14, 0.7]])
    target = np.array([[0.0, 1.0, 0.0, 1.0], [1.0, 0.4, 0.0, 1.0]])
    options: dict[str, Any] = dict(reduction=reduction)
    if reduction == "none":
        options["weight"] = array(2, 4)
    compare("binary_cross_entropy", probs, target, **options)


@pytest.mark.parametrize("positive", [None, WEIGHT], ids=["even", "pos_weight"])
def test_binary_cross_entropy_with_logits(positive: np.ndarray | None) -> None:
    logits = 20 * array(3, 4)
    logits[0] = 0.0

    weight = array(3, 4, seed=2)

    def call(library: Any, convert: Any) -> Any:
        pos_weight = None if positive is None else convert(positive)
        options = dict(weight=convert(weight), reduction="sum", pos_weight=pos_weight)
        return lambda x, t: library.binary_cross_entropy_with_logits(x, t, **options)

    same(call(loss_classes, jnp.asarray), call(F, torch.from_numpy), logits, array(3, 4, low=0.0, high=1.0))


def test_soft_margin_loss() -> None:
    target = np.sign(array(3, 4, seed=1))
    same(
        lambda x: loss_classes.soft_margin_loss(x, jnp.asarray(target)),
        lambda x: F.soft_margin_loss(x, torch.from_numpy(target)),
        array(3, 4),
    )


@pytest.mark.parametrize("p", [1, 2])
def test_multi_margin_loss(p: int) -> None:
    x = np.round(2 * array(5, 4)) / 2  # on the margin in places
    compare("multi_margin_loss", x, labels(5, ignore=0), weight=WEIGHT, p=p, margin=0.5)
    compare("multi_margin_loss", x[0], np.array(2), p=p)


def test_multilabel_margin_loss() -> None:
    x = np.round(2 * array(3, 4)) / 2
    target = np.array([[3, 0, -1, 1], [-1, 2, 1, 0], [0, 1, 2, 3]])
    compare("multilabel_margin_loss", x, target, reduction="none")
    compare("multilabel_margin_loss", x[0], target[0])


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_multilabel_soft_margin_loss(reduction: str) -> None:
    target = array(3, 4, low=0.0, high=1.0)
    compare("multilabel_soft_margin_loss", array(3, 4), target, weight=WEIGHT, reduction=reduction)
