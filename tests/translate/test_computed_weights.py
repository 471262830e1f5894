"""Initialisers of a weight that PyTorch computes anew in each call, by ``weight_norm``: what they fill is lost."""

from __future__ import annotations

import pytest

from t2j_lsp.api import convert

SOURCE = """
import torch
from torch import nn
from torch.nn.{function} as norm


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = norm(nn.Linear(3, 4))

    def forward(self, x):
        return self.fc(x)


def init(net: Net):
    if net.fc.bias is not None:
        {statement}
"""


@pytest.mark.parametrize("function", ["utils import weight_norm", "utils.parametrizations import weight_norm"])
@pytest.mark.parametrize("statement", ["nn.init.normal_(net.fc.weight, std=0.1)", "nn.init.zeros_(net.fc.weight.data)"])
def test_they_go_with_a_note(function: str, statement: str) -> None:
    translation = convert(SOURCE.format(function=function, statement=statement))
    assert not translation.gaps and any("lost" in note.reason for note in translation.notes)
    compile(translation.code, "net.py", "exec")
    assert "zeros" not in translation.code.partition("def init")[2].partition("\n\n")[0]


def test_its_bias_is_filled_and_spectral_norms_share_their_weight() -> None:
    filled = convert(SOURCE.format(function="utils import weight_norm", statement="nn.init.ones_(net.fc.bias)"))
    assert "bias[...] = 1" in filled.code and not filled.gaps
    shared = convert(SOURCE.format(function="utils import spectral_norm", statement="nn.init.ones_(net.fc.weight)"))
    assert not any("lost" in note.reason for note in shared.notes)
