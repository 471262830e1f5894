"""Recurrent cells against PyTorch: with and without bias, state and batch axis."""

from typing import Any

import pytest
import torch
from flax import nnx

from t2j_lsp.rules.helpers import recurrent_cells
from tests.helpers.compare import array, same_distribution, same_module

CASES: list[tuple[str, tuple[Any, ...]]] = [
    ("LSTMCell", (3, 4)),
    ("LSTMCell", (3, 4, False)),
    ("GRUCell", (3, 4)),
    ("GRUCell", (3, 4, False)),
    ("RNNCell", (3, 4)),
    ("RNNCell", (3, 4, True, "relu")),
]


@pytest.mark.parametrize(("name", "args"), CASES, ids=str)
def test_cell_starts_from_zeros(name: str, args: tuple[Any, ...]) -> None:
    cell = getattr(recurrent_cells, name)(*args, rngs=nnx.Rngs(0))
    reference = getattr(torch.nn, name)(*args)
    same_module(cell, reference, array(2, 3), jit=True)
    same_module(cell, reference, array(3))


class LSTMStep(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = torch.nn.LSTMCell(3, 4)

    def forward(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> Any:
        return self.cell(x, (h, c))


class LSTMStepNNX(nnx.Module):
    def __init__(self) -> None:
        self.cell = recurrent_cells.LSTMCell(3, 4, rngs=nnx.Rngs(0))

    def __call__(self, x: Any, h: Any, c: Any) -> Any:
        return self.cell(x, (h, c))


def test_lstm_cell_goes_on_from_a_state() -> None:
    same_module(LSTMStepNNX(), LSTMStep(), array(2, 3), array(2, 4), array(2, 4, seed=1), jit=True)


@pytest.mark.parametrize("name", ["GRUCell", "RNNCell"])
def test_cell_goes_on_from_a_state(name: str) -> None:
    cell = getattr(recurrent_cells, name)(3, 4, rngs=nnx.Rngs(0))
    same_module(cell, getattr(torch.nn, name)(3, 4), array(2, 3), array(2, 4), jit=True)


def test_fresh_parameters_are_distributed_as_in_pytorch() -> None:
    same_distribution(recurrent_cells.GRUCell(64, 64, rngs=nnx.Rngs(0)), torch.nn.GRUCell(64, 64))
