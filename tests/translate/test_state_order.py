"""The names of a state dict come in PyTorch's order, or what minds their order stays."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

from .side_by_side import sides

NET = """\
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.{first} = nn.Linear(3, 3)
        self.{second} = nn.Linear(3, 3)

    def forward(self, x):
        return self.{second}(self.{first}(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 2, 3)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), Part(){more})

    def forward(self, x):
        return self.out(self.conv(x).mean(1))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
optimizer.zero_grad()
loss = net(torch.ones(2, 1, 5)).sum()
loss.backward()
optimizer.step()
names = []
for name, value in net.state_dict().items():
    names.append(name)
    print(name, tuple(value.shape))
"""


def source(first: str = "fc1", second: str = "fc2", more: str = "") -> str:
    return NET.format(first=first, second=second, more=more)


def test_names_in_alphabetical_order_come_in_pytorchs_behind_a_compiled_step() -> None:
    pair = sides(source(), "in_order")
    assert not pair.gaps()
    assert pair.jax.names == pair.torch.names and pair.jax.names[:2] == ["conv.weight", "conv.bias"]


OTHERWISE = {
    "parts that were assigned in another order": source("second", "first"),
    "a count of batches, which Flax has not": source(more=", nn.BatchNorm1d(3)"),
    "weights of a helper": source(more=", nn.LSTM(3, 3)"),
    "more than ten parts": source(more=", nn.ReLU()" * 8),
    "a class with a base": source().replace("class Net(nn.Module)", "class Net(Part)"),
    "a part with a name that is made": source().replace(
        "        self.out =", "        self.add_module('a' + 'b', nn.Linear(3, 3))\n        self.out ="
    ),
    "a part that another method makes": source().replace(
        "    def forward(self, x):\n        return self.out",
        "    def grow(self):\n        self.after = nn.Linear(3, 3)\n\n"
        "    def forward(self, x):\n        return self.out",
    ),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_minds_another_order_stays(name: str) -> None:
    reasons = [gap.reason for gap in translate(OTHERWISE[name]).gaps]
    assert any("order of the names" in reason for reason in reasons), reasons


@pytest.mark.parametrize(
    "made", ["self.pool = nn.MaxPool1d(1)", "self.past = nn.Dropout(0.0)", "self.zoom = nn.ReLU()"]
)
def test_parts_without_parameters_may_stand_anywhere(made: str) -> None:
    """`conv`, `pool`, `out`: what is saved is in alphabetical order."""
    pair = sides(source().replace("self.drop = nn.Dropout(0.1)", made), "parts_without_parameters")
    assert not pair.gaps()
    assert pair.jax.names == pair.torch.names
