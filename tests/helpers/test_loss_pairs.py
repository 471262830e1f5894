"""Similarities, distances and their losses against PyTorch: zero vectors, equal vectors, values on the margin."""

from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
import torch.nn.functional as F

from t2j_lsp.rules.helpers import loss_pairs
from tests.helpers.compare import array, same_function

REDUCTIONS = ("mean", "sum", "none")
BESIDE = 0.0 if tuple(map(int, version("torch").split(".")[:2])) < (2, 14) else 0.1
"""How far from the margin: on it the gradient is that of a violation, and from PyTorch 2.14 on 0."""


def compare(name: str, *inputs: np.ndarray, jit: bool = True, **options: Any) -> None:
    function, reference = partial(getattr(loss_pairs, name), **options), partial(getattr(F, name), **options)
    same_function(function, reference, *inputs, jit=jit)


def pair() -> tuple[np.ndarray, np.ndarray]:
    """Vectors that are zero, equal, and shorter than an eps of 0.1 in places."""
    x, y = array(5, 3), array(5, 3, seed=1)
    x[0], y[1], y[2], x[3] = 0.0, 0.0, x[2], 1e-3 * x[3]
    return x, y


def test_cosine_similarity() -> None:
    compare("cosine_similarity", array(2, 3, 4), array(2, 3, 4, seed=1))
    compare("cosine_similarity", *pair(), dim=-1, eps=0.1)
    compare("cosine_similarity", array(5, 3), array(1, 3), jit=False)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
def test_pairwise_distance(p: float) -> None:
    compare("pairwise_distance", *pair(), p=p, keepdim=True)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_pairwise_distance_of_equal_vectors_has_gradient_zero(p: float) -> None:
    x, y = pair()
    compare("pairwise_distance", x, y, p=p, eps=0.0)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cosine_embedding_loss(reduction: str) -> None:
    target = np.array([1.0, -1.0, -1.0, 1.0, -1.0])
    compare("cosine_embedding_loss", *pair(), target, margin=0.25, reduction=reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_margin_ranking_loss_on_the_margin(reduction: str) -> None:
    x, y = np.round(2 * array(6)) / 2, np.round(2 * array(6, seed=1)) / 2 + BESIDE
    compare("margin_ranking_loss", x, y, np.array([1.0, -1, 1, -1, 1, -1]), margin=0.5, reduction=reduction)
    compare("margin_ranking_loss", x, x + BESIDE, np.ones(6), reduction=reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_hinge_embedding_loss(reduction: str) -> None:
    x = np.array([1.0, 1.0 - BESIDE, 0.3, 2.0, -1.0])
    compare("hinge_embedding_loss", x, np.array([1.0, -1, -1, -1, 1]), reduction=reduction)


@pytest.mark.parametrize("swap", [False, True])
def test_triplet_margin_loss(swap: bool) -> None:
    anchor, positive = pair()
    compare("triplet_margin_loss", anchor, positive, array(5, 3, seed=2), margin=0.7, p=2.0, swap=swap)


def test_triplet_margin_with_a_distance_function() -> None:
    inputs = [array(4, 3, seed=i) for i in range(3)]
    compare("triplet_margin_with_distance_loss", *inputs, reduction="none")
    squared: Any = lambda x, y: ((x - y) ** 2).sum(-1)  # noqa: E731
    compare("triplet_margin_with_distance_loss", *inputs, distance_function=squared, swap=True, margin=2.0)
