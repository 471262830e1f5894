"""Methods that a loss is computed with: those without gradients, as targets are computed, and those of base classes."""

from __future__ import annotations

import numpy as np
import pytest

from .side_by_side import sides

PROGRAM = """\
import torch
from torch import nn

x, y = torch.linspace(-1, 1, 24).reshape(8, 3), torch.linspace(0, 2, 16).reshape(8, 2)
losses = []


class Base:
    def __init__(self, net):
        self.net = net
        self.rate = 0.9
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)


class Agent(Base):
    def __init__(self, net):
        super().__init__(net)
        self.loss = nn.SmoothL1Loss()

    def estimate(self, x):
        return self.net(x) * self.rate

    {decorator}
    def target(self, x, y):
        return y + self.rate * self.net(x)

    def update(self, estimate, target):
        loss = self.loss(estimate, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def learn(self, x, y):
        estimate = self.estimate(x)
        target = self.target(x, y)
        loss = self.update(estimate, target)
        return estimate.mean().item(), loss


net = nn.Linear(3, 2)
nn.init.constant_(net.weight, 0.3)
nn.init.constant_(net.bias, 0.1)
agent = Agent(net)
for _ in range(4):
    losses += agent.learn(x, y)
"""


@pytest.mark.parametrize("decorator", ["@torch.no_grad()", "# with gradients"])
def test_a_step_is_given_what_they_read(decorator: str) -> None:
    pair = sides(PROGRAM.format(decorator=decorator), "methods_without_gradients")
    assert not pair.gaps()
    assert ("stop_gradient" in pair.translation.code) == decorator.startswith("@")
    assert "train_step(self.net, self.optimizer, " in pair.translation.code.replace("\n            ", "")
    assert len(pair.torch.losses) == len(pair.jax.losses) == 8
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)
