"""Losses of one element that are arrays: PyTorch's ``backward()`` takes them, ``jax.grad`` doesn't."""

from __future__ import annotations

import math
from types import ModuleType

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

TEXT = """\
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
{imports}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.pi, self.v = nn.Linear(3, 8), nn.Linear(8, 2), nn.Linear(8, 1)

    def forward(self, x):
        x = F.relu(self.fc(x))
        return F.softmax(self.pi(x), dim=-1), self.v(x)

def squares(a, b):
    return (a - b) ** 2

net = {net}
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
losses = []
for i in range(3):
    x = {x}
    reward = 0.5
    probs, v = net(x)
    {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""
ONE = "torch.ones(3).unsqueeze(0)"
DIST = "dist = torch.distributions.Categorical(probs)\n    action = torch.zeros(1, dtype=torch.int64)\n    "
ARRAYS = {
    "what a layer gave": (ONE, "loss = (reward - v) ** 2"),
    "of an array of NumPy's": (
        "torch.tensor(np.array([[1.0, 2.0, 3.0]]), dtype=torch.float32)",
        "loss = (reward - v) ** 2",
    ),
    "of a state without a batch": ("torch.ones(3)", "loss = -v * reward"),
    "an item": (ONE, "loss = (reward - v[0]).abs()"),
    "of a function of the file": (ONE, "loss = squares(reward, v)"),
    "a probability": (ONE, f"{DIST}loss = -dist.log_prob(action) * reward"),
    "added to a number": (ONE, "loss = probs.sum() + v"),
    "of one way or another": (ONE, "loss = v if i else -v"),
}
NUMBERS = {
    "a mean": (ONE, "loss = ((reward - v) ** 2).mean()"),
    "a loss of PyTorch's": (ONE, "loss = F.mse_loss(v, torch.ones_like(v))"),
    "an array of one that is a number": (ONE, "loss = (reward - v.squeeze()) ** 2"),
    "the same by a function": (ONE, "loss = (reward - torch.squeeze(v)) ** 2"),
    "a function's mean": (ONE, "loss = squares(reward, v.mean())"),
    "halves": (ONE, "loss = v.mean() / 2 + probs.sum()"),
}


def converted(x: str, loss: str, net: str = "Net()", imports: str = "") -> str:
    done = translate(TEXT.format(x=x, loss=loss, net=net, imports=imports), Options(helpers="import"))
    assert not done.gaps
    return done.code


@pytest.mark.parametrize(("x", "loss"), ARRAYS.values(), ids=ARRAYS)
def test_an_array_of_one_is_differentiated_as_a_number(x: str, loss: str) -> None:
    code = converted(x, loss)
    assert ".squeeze(), loss" in code
    assert "total_loss" in code, "the program reads the array"


@pytest.mark.parametrize(("x", "loss"), NUMBERS.values(), ids=NUMBERS)
def test_a_number_stays_as_it_is(x: str, loss: str) -> None:
    assert ".squeeze(), loss" not in converted(x, loss)


@pytest.mark.parametrize(
    ("loss", "is_array"), [("loss = (reward - v) ** 2", True), ("loss = v / 4", False), ("loss = v + probs", False)]
)
def test_what_an_unknown_module_gives_is_taken_for_a_loss_unless_it_is_squared(loss: str, is_array: bool) -> None:
    code = converted("torch.ones(1, 3)", loss, "Critic().to('cpu')", "from networks import Critic\n")
    assert (".squeeze(), loss" in code) is is_array


@pytest.mark.jax
@pytest.mark.parametrize("name", ["what a layer gave", "a probability"])
def test_it_runs(name: str) -> None:
    module = ModuleType("converted")
    exec(converted(*ARRAYS[name]), module.__dict__)
    assert len(module.losses) == 3 and all(map(math.isfinite, module.losses))
