"""Agents of several optimizers: in front of the second update stands what acted by its module without gradients."""

from __future__ import annotations

import re

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
    acts = re.search(r"\bactor(\)\(|, )x\)", loop)
    assert acts is not None
    places = [acts.start(), *(loop.index(one) for one in ("memory.append", "critic_step,", "actor_step,"))]
    assert places == sorted(places)
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


LEARNER = """\
import random
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.net, self.target, self.steps = nn.Linear(4, 2), nn.Linear(4, 2), 0
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def act(self, state):
        return self.net.forward(torch.FloatTensor(state)).argmax().item()

    def learn(self, batch):
        {copied}self.steps += 1
        s, a, r, n = batch
        s, n, r = torch.FloatTensor(s[:, :4]), torch.FloatTensor(n[:, :4]), torch.FloatTensor(r[:, :1])
        chosen = self.net(s).gather(1, torch.LongTensor(a[:, :1]))
        {between}after = self.target(n).detach()
        loss = nn.functional.mse_loss(chosen, r + after.max(1)[0].view(-1, 1))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


agent, state, batch = Agent(), [0.0] * 4, None
for step in range(9):
    action = agent.act(state)
    agent.learn(batch)
"""
COPY = "if self.steps % 9 == 0:\n            self.target.load_state_dict(self.net.state_dict())\n        "


def test_a_state_copied_in_front_of_a_step_stays_there_and_calls_around_it_are_compiled() -> None:
    done = convert(LEARNER.format(copied=COPY, between=""))
    assert not done.gaps, done.gaps
    learn = done.code[done.code.index("def learn") :]
    assert learn.index("nnx.update(self.target, nnx.state(self.net))") < learn.index("(train_step, ")
    assert "self.target, " in learn[learn.index("(train_step, ") :] and "after.max(axis=1)" in done.code
    assert "bound_jit(act_step, self.net)(jnp.array(state, dtype=jnp.float32))" in done.code
    assert done.code.count("value_and_grad") == 1


def test_a_state_copied_between_the_passes_is_no_part_of_a_step() -> None:
    """The net that is trained gets other values behind its forward pass: the gradient is of the old ones."""
    taken = "self.net.load_state_dict(self.target.state_dict())\n        "
    done = convert(LEARNER.format(copied="", between=taken))
    assert [gap.code for gap in done.gaps] == ["training-loop"]


def test_functions_that_a_step_calls_are_compiled_with_it() -> None:
    source = LEARNER.format(copied="", between="").replace("chosen = self.net(s)", "chosen = self.values(s)")
    own = "    def values(self, s):\n        return self.net(s)\n\n    def learn("
    done = convert(source.replace("    def learn(", own))
    assert not done.gaps, done.gaps
    assert "(act_step, self.net)(jnp" in done.code and "(train_step, self.net, self.target, " in done.code
    assert " forward(" not in done.code
