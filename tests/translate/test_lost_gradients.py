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
