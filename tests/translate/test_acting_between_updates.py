"""Agents of several optimizers: in front of the second update stands what acted by its module without gradients."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

AGENT = """\
import random
import torch
from torch import nn

actor, critic = nn.Linear(2, 2), nn.Linear(4, 1)
opt_a, opt_c = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
memory, x = [], torch.randn(4, 2)
for i in range(9):
    if i < 4:
        a = torch.randn(4, 2)
    else:
        {act}
    memory.append((x, a))
    x = x + 1
    o, a = random.choice(memory)
    q_loss = critic(torch.cat([o, a], 1)).pow(2).mean()
    opt_c.zero_grad()
    q_loss.backward()
    opt_c.step()
    pi = actor(o)
    a_loss = -critic(torch.cat([o, pi], 1)).mean()
    opt_a.zero_grad()
    a_loss.backward()
    opt_a.step()
"""


@pytest.mark.parametrize(
    "act",
    [
        "with torch.no_grad():\n            a = actor(x)\n        a = a * 2",
        "if i > 6:\n            with torch.no_grad():\n                a = actor(x)\n        else:\n            a = x",
    ],
)
def test_what_acts_under_no_grad_stays_in_front_of_both_updates(act: str) -> None:
    done = convert(AGENT.format(act=act))
    assert not done.gaps, done.gaps
    code = done.code
    loop = code[code.index("for i in range(9):") :]
    assert loop.index("actor(x)") < loop.index("memory.append") < loop.index("critic_step(") < loop.index("actor_step(")
    assert code.count("def loss_fn") == 2 and "stop_gradient" not in loop


@pytest.mark.parametrize(
    "act",
    [
        "a = actor(x)",
        "with torch.no_grad():\n            b = actor(x)\n        a = actor(x) + b",
        "with torch.enable_grad():\n            a = actor(x)",
    ],
)
def test_what_acts_with_gradients_is_a_gap(act: str) -> None:
    assert "training loop" in [gap.name for gap in convert(AGENT.format(act=act)).gaps]
