"""Agents as they are published: what a trainer class holds and switches, and what is handed to its constructor."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .printed import printed

AGENT = """\
import itertools
import torch
from torch import nn

class ActorCritic(nn.Module):
    def __init__(self, n, hidden=(4,)):
        super().__init__()
        self.pi = nn.Linear(n, 2)
        self.q1 = nn.Linear(n + 2, 1)
        self.q2 = nn.Linear(n + 2, 1)
        for p in self.parameters():
            nn.init.constant_(p, 0.1)

class Agent:
    def __init__(self, n, actor_critic=ActorCritic, options=dict(), auto=True):
        self.ac = actor_critic(n, **options)
        self.q_params = {joined}
        self.pi_optimizer = torch.optim.SGD(self.ac.pi.parameters(), lr=0.1)
        self.q_optimizer = torch.optim.SGD(self.q_params, lr=0.1)
        self.auto = auto
        if auto:
            self.log_alpha = torch.tensor(0.5, requires_grad=True)
            self.alpha_optimizer = torch.optim.SGD([self.log_alpha], lr=0.1)
        else:
            self.log_alpha = torch.tensor(0.5)
            self.alpha_optimizer = None

    def update(self, o, a):
        x = torch.cat([o, a], 1)
        loss_q = ((self.ac.q1(x) - 1) ** 2).mean() + ((self.ac.q2(x) + 1) ** 2).mean()
        self.q_optimizer.zero_grad()
        loss_q.backward()
        self.q_optimizer.step()
        for p in self.q_params:
            p.requires_grad = False
        x = torch.cat([o, self.ac.pi(o)], 1)
        q = torch.min(self.ac.q1(x), self.ac.q2(x))
        loss_pi = -q.mean()
        self.pi_optimizer.zero_grad()
        loss_pi.backward()
        self.pi_optimizer.step()
        if self.auto:
            alpha_loss = -(self.log_alpha * (q + 2).detach()).mean()
            self.alpha_optimizer.zero_grad()
            alpha_loss.backward()
            self.alpha_optimizer.step()
        for p in self.q_params:
            p.requires_grad = True
        return [round(one, 4) for one in (loss_q.item(), loss_pi.item(), self.log_alpha.exp().item())]

agent = Agent(3{given})
for step in range(3):
    print(agent.update(torch.ones(4, 3) * step, torch.ones(4, 2)))
"""
CHAIN = "itertools.chain(self.ac.q1.parameters(), self.ac.q2.parameters())"
LISTS = "list(self.ac.q1.parameters()) + list(self.ac.q2.parameters())"


@pytest.mark.parametrize("joined", [CHAIN, LISTS])
@pytest.mark.parametrize("given", ["", ", ActorCritic, dict(hidden=[2])", ", actor_critic=ActorCritic, auto=False"])
def test_what_the_agent_holds_is_followed(joined: str, given: str) -> None:
    source = AGENT.format(joined=joined, given=given)
    done = convert(source)
    assert not done.gaps
    assert "requires_grad" not in done.code and "q_params" not in done.code
    assert printed(done.code) == printed(source)


def test_another_class_may_be_handed_over() -> None:
    other = 'Other = type("Other", (ActorCritic,), {})\nagent = Agent('
    done = convert(AGENT.format(joined=LISTS, given=", actor_critic=Other").replace("agent = Agent(", other))
    assert done.gaps


def test_parameters_that_stay_frozen_are_a_gap() -> None:
    source = AGENT.format(joined=LISTS, given="")
    thawed = "        for p in self.q_params:\n            p.requires_grad = True\n"
    assert thawed in source
    assert convert(source.replace(thawed, "")).gaps


ADAPTED = """\
import torch
from torch import nn

encoder, head = nn.Linear(3, 4), nn.Linear(4, 2)
for p in [*encoder.parameters(), *head.parameters()]:
    nn.init.constant_(p, 0.1)
opt_e = torch.optim.SGD(encoder.parameters(), lr=0.1)
opt_h = torch.optim.SGD(head.parameters(), lr=0.1)
x, y = torch.linspace(-1, 1, 12).reshape(4, 3), torch.tensor([0, 1, 0, 1])
for step in range(3):
    encoder.train()
    z = encoder(x)
    first = nn.functional.cross_entropy(head(z), y)
    opt_e.zero_grad()
    opt_h.zero_grad()
    first.backward()
    opt_e.step()
    opt_h.step()
    encoder.eval()
    with torch.no_grad():
        z = encoder(x)
        other = encoder(-x)
    {between}
    second = nn.functional.cross_entropy(head(z), y) - 0.1 * head(other).abs().mean()
    opt_h.zero_grad()
    second.backward()
    opt_h.step()
    print(round(first.item(), 4), round(second.item(), 4))
"""


@pytest.mark.parametrize("between", ["pass", "if not torch.isfinite(first):\n        raise ValueError"])
def test_what_a_block_gives_anew_comes_from_no_update_before(between: str) -> None:
    source = ADAPTED.format(between=between)
    done = convert(source)
    assert not done.gaps
    assert printed(done.code) == printed(source)
