"""A step that reads an array of a list by a counter is given the array: no list has items by a traced number."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """\
import torch
from torch import nn

xs, ys = [], []
for i in range(3):
    xs.append(torch.randn(4, 5))
    ys.append(torch.randn(4, 1))
net = nn.Linear(5, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for j in range(len(xs)):
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("loss", "given"),
    [
        ("(net(xs[j]) - ys[j]).square().mean()", "xs[j], ys[j]"),
        ("(net(xs[-j - 1]) - ys[j]).square().mean()", "xs[-j - 1], ys[j]"),
        ("(net(xs[0]) - ys[j]).square().mean()", "xs, ys[j]"),
        ("sum((net(xs[k]) - ys[k]).square().mean() for k in range(3))", "xs, ys"),
    ],
)
def test_one_array_of_a_list_is_passed(loss: str, given: str) -> None:
    done = convert(TEXT.format(loss=loss))
    assert not done.gaps
    assert f"train_step({given})\n" in done.code


PASSED = """\
import torch
import torch.nn.functional as F
from torch import nn

class Agent:
    def __init__(self):
        self.policy = nn.Linear(4, 2)
        self.optimizer = torch.optim.Adam(self.policy.parameters())

    def update(self, states, actions, old):
        {first}
        new = torch.log_softmax(self.policy(states), -1).gather(1, actions)
        loss = -torch.exp(new - old).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

agent = Agent()
for _ in range(3):
    states, actions = torch.randn(5, 4), torch.zeros(5, 1, dtype=torch.long)
    {made}
    agent.update(states, actions, {old})
"""


def passed(made: str, old: str, first: str = "pass") -> list[str]:
    return [gap.reason for gap in convert(PASSED.format(made=made, old=old, first=first)).gaps]


@pytest.mark.parametrize(
    ("made", "old"),
    [
        ("scores = agent.policy(states)", "torch.log_softmax(scores, -1)[:, :1]"),
        ("pass", "agent.policy(states).log_softmax(-1)[:, :1]"),
    ],
)
def test_what_a_call_gives_with_its_gradients_is_a_gap(made: str, old: str) -> None:
    """PyTorch's gradients flow through the argument into the module; in JAX it is a number."""
    program = PASSED.replace("agent.update", "for one in (agent, Agent()):\n        one.update")
    reasons = [gap.reason for gap in convert(program.format(made=made, old=old, first="pass")).gaps]
    assert any("carry no gradient" in one for one in reasons)


def test_what_the_only_call_gives_is_computed_in_the_step() -> None:
    done = convert(PASSED.format(made="pass", old="agent.policy(states).log_softmax(-1)[:, :1]", first="pass"))
    assert not done.gaps
    assert done.code.split("def loss_fn")[1].split("return")[0].count("policy(states)") == 2


@pytest.mark.parametrize(
    ("made", "old", "first"),
    [
        ("scores = agent.policy(states).detach()", "scores[:, :1]", "pass"),
        ("with torch.no_grad():\n        scores = agent.policy(states)", "scores[:, :1]", "pass"),
        ("scores = agent.policy(states)", "scores[:, :1]", "old = old.detach()"),
        ("scores = agent.policy(states)", "scores.detach()[:, :1]", "pass"),
        ("scores = torch.ones(5, 2)", "scores[:, :1]", "pass"),
    ],
)
def test_what_is_detached_is_none(made: str, old: str, first: str) -> None:
    assert not passed(made, old, first)
