"""Objects that hold modules and optimizers, trained by code outside of their classes: ``agent.opt.step()``."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp import convert

from .side_by_side import sides

HEAD = """\
import torch
from torch import nn
import torch.nn.functional as F

x, y = torch.linspace(-1, 1, 12).reshape(6, 2), torch.tensor([0, 1, 2, 0, 1, 2])
losses = []


class Agent:
    def __init__(self, net, lr):
        self.net = net
        nn.init.constant_(self.net.weight, 0.3)
        nn.init.constant_(self.net.bias, 0.1)
        self.opt = torch.optim.SGD(net.parameters(), lr=lr)
        self.steps = 0

    def loss(self, x, y):
        return F.cross_entropy(self.net(x), y)


"""
UPDATE = """
def update({parameters}):
    loss = {loss}
    {before}
    loss.backward()
    {behind}
    agent.steps += 1
    losses.append(loss.item())


"""
PARTS = {
    "parameters": "agent, x, y",
    "loss": "F.cross_entropy(agent.net(x), y)",
    "before": "agent.opt.zero_grad()",
    "behind": "agent.opt.step()",
}
MADE = "agent = Agent(nn.Linear(2, 3), 0.5)\n"
CALLS = "for i in range(4):\n    update(agent, x, y)\nlosses.append(agent.steps)\n"


def program(made: str = MADE, calls: str = CALLS, **parts: str) -> str:
    return HEAD + UPDATE.format(**PARTS | parts) + made + calls


PROGRAMS = {
    "given to a function": program(),
    "two of them": program(
        "agent, other = Agent(nn.Linear(2, 3), 0.5), Agent(nn.Linear(2, 3), 0.1)\n",
        "for i in range(4):\n    update(agent, x, y)\n    update(other, x, y)\nlosses.append(other.steps)\n",
    ),
    "from outside": program(parameters="x, y", calls=CALLS.replace("agent, x", "x")).replace(
        "    agent.steps += 1\n", ""
    ),
    "by a method": program(loss="agent.loss(x, y) + agent.net.weight.square().sum()"),
    "with clipping": program(behind="nn.utils.clip_grad_norm_(agent.net.parameters(), 0.1)\n    agent.opt.step()"),
    "at the module level": HEAD
    + MADE
    + "for i in range(4):\n    loss = agent.loss(x, y)\n    agent.opt.zero_grad()\n    loss.backward()\n"
    + "    agent.opt.step()\n"
    + "    agent.steps += 1\n    losses.append(loss.item())\nlosses.append(agent.steps)\n",
    "made in a function": program(
        "def main():\n    agent = Agent(nn.Linear(2, 3), 0.5)\n",
        "    for i in range(4):\n        update(agent, x, y)\nmain()\n",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_an_object_holds_is_trained(name: str) -> None:
    pair = sides(PROGRAMS[name], "holders")
    assert not pair.gaps()
    assert "train_step(agent.net, agent.opt, " in pair.translation.code
    assert len(pair.torch.losses) == len(pair.jax.losses) >= 4
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)
    assert convert(pair.translation.code).code == pair.translation.code


REFUSED = {
    "another name of it": program(before="other = agent\n    other.opt.zero_grad()"),
    "gradients that another function leaves": program(
        made="def more(a):\n    a.loss(x, y).backward()\n\n\n" + MADE,
        before="more(agent)",
        behind="agent.opt.step()\n    agent.opt.zero_grad()",
    ),
    "values of earlier calls": program(made=MADE + "agent.kept = agent.net(x)\n", loss="agent.kept.sum()"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_sure_stays(name: str) -> None:
    assert any("training code isn't converted" in gap.reason for gap in convert(REFUSED[name]).gaps)
