"""Initial values by what a layer has or is called: ``if hasattr(m, "weight") and m.weight.dim() > 1:``."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp import convert

from .side_by_side import sides

PROGRAM = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.embedding = nn.Embedding(n, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.norm = nn.LayerNorm(d)
        self.out = nn.Sequential(nn.Linear(d, 4), nn.ReLU(), nn.Linear(4, 3))

    def forward(self, x):
        h, _ = self.rnn(self.embedding(x))
        return self.out(self.norm(h).sum(1))


def init_weights(m):
    {asked}
    if hasattr(m, "bias") and isinstance(m.bias, torch.Tensor):
        m.bias.data.fill_(0.25)


net = Net(10, 8)
for p in net.rnn.parameters():
    nn.init.constant_(p, 0.1)
net.apply(init_weights)
values = net(torch.arange(10).reshape(2, 5)).flatten().tolist()
"""
FILL = "nn.init.constant_(m.weight.data, 0.5)"
OF_A_NAME = (
    'name = m.__class__.__name__\n    if name.find("Linear") != -1:\n        m.weight.data.fill_(0.5)\n'
    '    elif name.find("Embedding") != -1:\n        m.weight.data.fill_(0.5)'
)
THERE = 'hasattr(m, "weight") and m.weight is not None and m.weight.ndim >= 2'
ASKED = {
    "a weight of two axes": f'if hasattr(m, "weight") and m.weight.dim() > 1:\n        {FILL}',
    "a weight that is there": f"if {THERE}:\n        {FILL}",
    "inside": f'if hasattr(m, "weight"):\n        if m.weight.dim() > 1:\n            {FILL}',
    "either type": f"if type(m) == nn.Linear or type(m) == nn.Embedding:\n        {FILL}",
    "a part of the name": OF_A_NAME,
}
OWN = PROGRAM.replace("class Net", "class Scale(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.weight = nn.Parameter(torch.ones(3, 3))\n\n\nclass Net").replace(
    "        self.norm", "        self.scale = Scale()\n        self.norm")  # fmt: skip
ATTENTION = PROGRAM.replace(
    "        self.norm", "        self.mix = nn.MultiheadAttention(d, 2, batch_first=True)\n        self.norm"
)


@pytest.mark.parametrize("name", ASKED)
def test_each_layer_that_answers_yes_has_a_branch(name: str) -> None:
    pair = sides(PROGRAM.format(asked=ASKED[name]), f"layers_asked_{name.replace(' ', '_')}")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.values, pair.torch.values, rtol=1e-4)
    assert max(pair.torch.values) > 0.25


def test_a_condition_that_is_known_goes() -> None:
    code = convert(PROGRAM.format(asked=ASKED["a weight of two axes"])).code
    assert "if isinstance(m, nnx.Embed):" in code and "elif isinstance(m, nnx.Linear):" in code
    assert "elif isinstance(m, nnx.LayerNorm) and m.scale.ndim > 1:" in code


@pytest.mark.parametrize("program", [OWN, ATTENTION])
def test_modules_whose_parts_are_not_seen_leave_a_gap(program: str) -> None:
    assert convert(program.format(asked=ASKED["a weight of two axes"])).gaps


QUESTIONS = """\
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.line = nn.Linear(3, 3)
        self.bare = nn.Linear(3, 3, bias=False)

    def forward(self, x):
        return self.line(x) * self.scale


def is_there(layer):
    return hasattr(layer, "bias") and isinstance(layer.bias, torch.Tensor)


net = Scale()
values = [
    isinstance(net.scale, nn.Parameter), isinstance(net.scale, torch.Tensor), isinstance(net.line.bias, nn.Parameter),
    isinstance(net.line.weight, nn.Parameter), is_there(net.line), is_there(net.bare), is_there(net),
]
"""


def test_a_parameter_is_one() -> None:
    """An array that is read of a Variable is none, and a Variable is no array."""
    pair = sides(QUESTIONS, "parameters_asked")
    assert not pair.gaps()
    assert pair.jax.values == pair.torch.values == [True] * 5 + [False] * 2
