"""Unfolding and folding against PyTorch, with every option different on the two axes."""

from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from flax import nnx

from t2j_lsp.rules.helpers import folding
from tests.helpers.compare import array, same_function, same_module

OPTIONS: list[dict[str, Any]] = [
    dict(kernel_size=2),
    dict(kernel_size=(2, 3), dilation=(2, 1), padding=(1, 2), stride=(1, 2)),
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", [(2, 3, 6, 7), (3, 6, 7)])
def test_unfold(options: dict[str, Any], shape: tuple[int, ...]) -> None:
    same_function(partial(folding.unfold, **options), partial(F.unfold, **options), array(*shape))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("lead", [(2,), ()])
def test_fold_adds_overlapping_blocks(options: dict[str, Any], lead: tuple[int, ...]) -> None:
    options = options | dict(output_size=(6, 7))
    x = F.unfold(torch.from_numpy(array(*lead, 3, 6, 7)), **{k: v for k, v in options.items() if k != "output_size"})
    same_function(partial(folding.fold, **options), partial(F.fold, **options), x.numpy(), jit=True)


@pytest.mark.parametrize("dimension", [0, 1, -1])
def test_tensor_unfold(dimension: int) -> None:
    x = array(4, 5, 7)
    same_function(lambda x: folding.tensor_unfold(x, dimension, 3, 2), lambda x: x.unfold(dimension, 3, 2), x)


def test_layers() -> None:
    arguments = ((2, 3), 1, (1, 0), 2)
    same_module(folding.Unfold(*arguments, rngs=nnx.Rngs(0)), torch.nn.Unfold(*arguments), array(2, 3, 5, 7))
    same_module(folding.Fold((5, 7), 3, 1, 1, 2, rngs=nnx.Rngs(0)), torch.nn.Fold((5, 7), 3, 1, 1, 2), array(2, 18, 12))


def test_lists_are_kept_as_tuples_so_that_jit_can_hash_the_module() -> None:
    for layer in (folding.Unfold([2, 2], [1, 1], [0, 0], [1, 1]), folding.Fold([4, 4], [2, 2])):
        assert isinstance(hash(nnx.graphdef(layer)), int)
