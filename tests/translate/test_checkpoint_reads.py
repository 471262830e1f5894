"""A checkpoint whose settings a data pipeline is built from is read for JAX: its file holds JAX's arrays."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

SOURCE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = torch.randn(32, 3), torch.randn(32, 4)


def evaluate(path):
    saved = torch.load(path, weights_only=True)
    config = saved["config"]
    net = nn.Linear(3, 4)
    LOAD
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=config["batch_size"]):
        print(nn.functional.mse_loss(net(xb), yb).item())
"""


@pytest.mark.parametrize(
    "load",
    [
        'net.load_state_dict(saved["model"])',
        'state = saved["model"]\n    net.load_state_dict(state)',
        'parts = saved["parts"]\n    state = parts["model"]\n    net.load_state_dict(state)',
    ],
)
def test_what_a_module_loads_is_read_for_jax(load: str) -> None:
    translation = convert(SOURCE.replace("LOAD", load))
    assert not translation.gaps
    assert "torch.load" not in translation.code


def test_what_only_the_pipeline_reads_stays() -> None:
    code = convert(SOURCE.replace("LOAD", "print(net)")).code
    assert "saved = torch.load(path, weights_only=True)" in code
