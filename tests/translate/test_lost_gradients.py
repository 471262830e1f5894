"""Lists that are filled with values of a forward pass in one place and read by a loss in another: PyTorch's gradients
flow through them, and a step that is given them would train nothing.
"""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

AGENT = """\
import torch
from torch import nn
from torch.distributions import Categorical

class Agent:
    def __init__(self):
        self.net = nn.Linear(4, 2)
        self.critic = nn.Linear(4, 1)
        self.optimizer = torch.optim.Adam(list(self.net.parameters()) + list(self.critic.parameters()))
        self.saved, self.states = [], []

    {decorator}
    def act(self, state):
        state = torch.as_tensor(state, dtype=torch.float32)
        dist = Categorical(logits=self.net(state))
        action = dist.sample()
        self.saved.append({saved})
        self.states.append(state)
        return action.item()

    def update(self, total):
        loss = {loss} * total + self.critic(torch.stack(self.states)).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.saved.clear()
        self.states.clear()
        return loss.item()
"""
LOG_PROB = "dist.log_prob(action)"
STACKED = "torch.stack(self.saved).sum()"
PLAIN = "@staticmethod\n    def other(): pass"


@pytest.mark.parametrize(
    ("saved", "loss", "decorator", "lost"),
    [
        (LOG_PROB, STACKED, PLAIN, True),
        (LOG_PROB, "sum(self.saved)", PLAIN, True),
        (LOG_PROB + ".detach()", STACKED, PLAIN, False),
        (LOG_PROB, "torch.stack(self.saved).detach().sum()", PLAIN, False),
        (LOG_PROB, STACKED, "@torch.no_grad()", False),
        ("action", STACKED, PLAIN, False),
        ("state", STACKED, PLAIN, False),
        (LOG_PROB, "len(self.saved)", PLAIN, False),
    ],
)
def test_an_agent_whose_policy_would_not_learn_is_told(saved: str, loss: str, decorator: str, lost: bool) -> None:
    gaps = translate(AGENT.format(saved=saved, loss=loss, decorator=decorator)).gaps
    assert any("carry no gradient" in gap.reason for gap in gaps) is lost, [gap.reason for gap in gaps]
    assert lost or not gaps


SCRIPT = """\
import torch
from torch import nn

net = nn.Linear(4, 2)
optimizer = torch.optim.Adam(net.parameters())
kept = []

def look(x):
    kept.append({kept})

for episode in range(5):
    for t in range(3):
        look(torch.ones(4))
    loss = torch.stack(kept).mean() * net(torch.ones(4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.clear()
"""


def test_a_list_of_the_module_level_that_grows_is_no_constant_of_a_step() -> None:
    """A compiled step would keep what the first call saw."""
    done = translate(SCRIPT.format(kept="x"))
    assert not done.gaps
    assert "def train_step(net, optimizer, kept)" in done.code


def test_one_that_holds_what_the_module_gave_is_told() -> None:
    gaps = translate(SCRIPT.format(kept="net(x)")).gaps
    assert any("carry no gradient" in gap.reason for gap in gaps)


OUT_OF_SIGHT = """\
import numpy as np
import torch
from torch.distributions import Categorical

from networks import Net

class Agent:
    def __init__(self):
        self.net = {net}
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.saved = []

    def as_tensor(self, state):
        return torch.FloatTensor(np.asarray(state))

    def act(self, state):
        logits, value = self.net(self.as_tensor(state))
        dist = Categorical(logits=logits)
        action = dist.sample()
        self.saved.append((dist.log_prob(action), value))
        return action.item()

    def update(self, last, total):
        with torch.no_grad():
            _, value = self.net({last})
        loss = 0
        for log_prob, kept in self.saved:
            loss = loss - log_prob * (total + value - kept.detach())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.saved = []
        return loss.item()
"""


@pytest.mark.parametrize("net", ["Net()", "Net().to('cuda')", "Net().to(torch.device('cuda'))"])
@pytest.mark.parametrize("last", ["last", "self.as_tensor(last)"])
def test_a_module_that_nothing_is_known_of_is_no_other(net: str, last: str) -> None:
    """Nor does a step lose less that runs whole, uncompiled, as NumPy is called in it."""
    done = translate(OUT_OF_SIGHT.format(net=net, last=last))
    assert any("self.saved, values of earlier calls" in gap.reason for gap in done.gaps), done.code
    assert "self.net = Net()\n" in done.code


def test_a_function_of_pytorch_that_is_called_as_lists_are_filled_keeps_nothing() -> None:
    source = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 1)

    def forward(self, x):
        return self.second(torch.add(x, self.first(x)))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = torch.add(net(torch.ones(4, 3)).mean(), 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    assert not translate(source).gaps
