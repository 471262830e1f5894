"""Layers inside of another module in Flax: ``spectral_norm(nn.Linear(3, 4))`` changes the layer itself in PyTorch."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

MODULE = """\
import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.utils import spectral_norm


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = spectral_norm(nn.Conv2d(1, 4, 3, bias=False))
        self.fc = spectral_norm(nn.Linear(4, 1), n_power_iterations=2)
        {built}

    def forward(self, x):
        {called}
        return self.fc(self.conv(x).mean((2, 3)))
"""


def converted(built: str = "pass", called: str = "pass") -> tuple[str, list[str]]:
    done = convert(MODULE.format(built=built, called=called))
    return " ".join(done.code.split()).replace("( ", "(").replace(" )", ")").replace(",)", ")"), [
        gap.name for gap in done.gaps
    ]


def test_the_layer_is_built_inside_of_the_module_around_it() -> None:
    code, gaps = converted()
    assert not gaps
    assert (
        "self.conv = SpectralNorm(ChannelsFirstConv(1, 4, (3, 3), padding=0, use_bias=False, rngs=rngs), rngs=rngs)"
        in code
    )
    assert (
        "self.fc = SpectralNorm(nnx.Linear(4, 1, **uniform_init(4), rngs=rngs), n_power_iterations=2, rngs=rngs)"
        in code
    )
    assert "torch" not in code.partition("# PyTorch behaviour")[0]


def test_its_parameters_are_initialised_inside_while_it_is_built() -> None:
    code, gaps = converted("nn.init.xavier_uniform_(self.fc.weight); nn.init.zeros_(self.fc.bias)")
    assert not gaps
    assert "self.fc.layer_instance.kernel[...] = nnx.initializers.xavier_uniform()(" in code
    assert "self.fc.layer_instance.bias[...] = " in code


@pytest.mark.parametrize(
    ("built", "called"),
    [
        ("pass", "x = x + self.fc.weight.norm()"),
        ("pass", "print(self.fc.weight_u)"),
        ("pass", "nn.init.zeros_(self.fc.weight)"),
        ("print(self.fc.weight_orig)", "pass"),
        ("spectral_norm(self.fc)", "pass"),
        ("self.up = spectral_norm(nn.ConvTranspose2d(1, 2, 3))", "pass"),
        ("self.rnn = spectral_norm(nn.LSTM(1, 2), name='weight_hh_l0')", "pass"),
        ("self.more = spectral_norm(nn.Linear(1, 2), dim=1)", "pass"),
        ("self.more = nn.utils.parametrizations.spectral_norm(nn.Linear(1, 2))", "pass"),
        ("for part in self.modules():\n            spectral_norm(part)", "pass"),
    ],
)
def test_what_is_asked_of_the_divided_weight_or_done_to_a_layer_in_place_is_a_gap(built: str, called: str) -> None:
    assert converted(built, called)[1]
