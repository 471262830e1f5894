"""Functions that give a gradient by an input, as PINNs have them, named first or with weights that nobody gives."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp import convert

from .side_by_side import sides

PROGRAM = """\
import torch
from torch import nn


def gradient({parameters}):
    {body}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(1, 4), nn.Linear(4, 1)
        for layer in (self.a, self.b):
            nn.init.constant_(layer.weight, 0.3)
            nn.init.constant_(layer.bias, 0.1)

    def forward(self, x):
        return self.b(torch.tanh(self.a(x)))


def residual(net, x):
    u = net(x)
    u_x = gradient(u, x)
    u_xx = gradient({second})
    return u_xx + u * u_x


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.linspace(0, 1, 8).view(-1, 1).requires_grad_(True)
losses = []
for i in range(4):
    loss = residual(net, x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
"""
PARTS = {"parameters": "y, x, weights=None", "second": "u_x, x"}
ASKED = "torch.autograd.grad(y, [x], grad_outputs={}, create_graph=True)[0]"
MADE = "if weights is None:\n        weights = torch.ones_like(y)\n    "
BODIES = {
    "at once": {"parameters": "y, x", "body": "return " + ASKED.format("torch.ones_like(y)")},
    "named first": {"parameters": "y, x", "body": f"g = {ASKED.format('torch.ones_like(y)')}\n    return g"},
    "weights that nobody gives": {"body": f'"""Of all."""\n    {MADE}return {ASKED.format("weights")}'},
    "both": {"body": f"{MADE}g = {ASKED.format('weights')}\n    return g"},
}


@pytest.mark.parametrize("name", BODIES)
def test_the_gradient_is_taken_where_it_is_asked_for(name: str) -> None:
    pair = sides(PROGRAM.format(**PARTS | BODIES[name]), "asked_in_functions")
    assert not pair.gaps()
    assert "u_x = jax.grad(" in pair.translation.code
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=2e-5)


@pytest.mark.parametrize(
    "parts",
    [
        {"second": "u_x, x, 2 * torch.ones_like(u)"},
        {"second": "*(u_x, x)"},
        {"body": f"{MADE}g = {ASKED.format('weights')}\n    return 2 * g"},
        {"body": f"{MADE}g = {ASKED.format('2 * weights')}\n    return g"},
    ],
    ids=["weights are given", "unpacked", "another value", "other weights"],
)
def test_others_stay(parts: dict[str, str]) -> None:
    assert convert(PROGRAM.format(**PARTS | BODIES["both"] | parts)).gaps
