"""Padding against PyTorch: every mode, cropping, and pairs that differ on every side."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flax import nnx

from t2j_lsp.rules.helpers import padding
from tests.helpers.compare import array, same_function, same_module


def compare(x: np.ndarray, *args: Any) -> None:
    same_function(lambda x: padding.pad(x, *args), lambda x: F.pad(x, *args), x)


def test_constant_padding_takes_the_last_axis_first_and_crops() -> None:
    x = array(2, 3, 4, 5)
    compare(x, (1, 2))
    compare(x, (1, 2, 0, 3), "constant", -1.5)
    compare(x, (-1, 2, 3, -2, 0, 1, 1, 0))


def test_constant_padding_keeps_the_dtype() -> None:
    compare(array(2, 3) > 0, (1, 2), "constant", True)
    compare(np.arange(6).reshape(2, 3), (1, 2), "constant", 7)
    assert padding.pad(jnp.ones(3, jnp.bfloat16), (1, 0), value=2.5).dtype == jnp.bfloat16


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_other_modes(mode: str) -> None:
    compare(array(2, 3, 4, 5), (1, 2, 3, 0), mode)
    compare(array(3, 4, 5), (2, 1), mode)
    compare(array(1, 2, 3, 4, 5), (2, 1, 0, 3, 1, 2), mode)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_other_modes_crop(mode: str) -> None:
    compare(array(2, 3, 5, 6), (-1, 2, 1, -2), mode)


LAYERS = [
    (f"{kind}Pad{rank}d", rank, arguments)
    for kind, arguments in {
        "Zero": [(2,), ((1, 2),)],
        "Constant": [(1, 3.5), ((1, -1), -2.0)],
        "Reflection": [(1,), ((1, 2),)],
        "Replication": [(2,), ((1, 3),)],
        "Circular": [(1,), ((2, 1),)],
    }.items()
    for rank in (1, 2, 3)
]


@pytest.mark.parametrize(("name", "rank", "arguments"), LAYERS, ids=[name for name, *_ in LAYERS])
def test_layer(name: str, rank: int, arguments: list[Any]) -> None:
    x = array(2, 2, 3, 4, 5)[(slice(None),) * 2 + (0,) * (3 - rank)]
    make, reference = getattr(padding, name), getattr(torch.nn, name)
    for first, *rest in arguments:
        pairs = first * rank if isinstance(first, tuple) else first
        same_module(make(pairs, *rest, rngs=nnx.Rngs(0)), reference(pairs, *rest), x, jit=True)
