"""Values that a program computes in front of a step with what the step trains: PyTorch's gradients flow there."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

AGENT = """\
import torch
from torch import nn
from torch.distributions import Categorical


class Agent:
    def __init__(self):
        self.net, self.target = nn.Linear(3, 2), nn.Linear(3, 2)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)
        self.log_prob = None

    {decorator}
    def act(self, state):
        dist = Categorical(logits=self.net(state))
        action = dist.sample()
        {kept}
        return action

    def learn(self, state, reward):
        self.optimizer.zero_grad()
        delta = reward - self.net(state).mean()
        loss = {loss}
        loss.backward()
        self.optimizer.step()


agent = Agent()
for i in range(3):
    agent.act(torch.randn(4, 3))
    agent.learn(torch.randn(4, 3), 0.5)
"""
KEPT = "self.log_prob = dist.log_prob(action)"
LOSS = "(-self.log_prob * delta.detach()).mean() + delta ** 2"
ROUNDABOUT = "log_prob = dist.log_prob(action)\n        self.log_prob, self.last = log_prob, state"


def reasons(text: str, **parts: str) -> list[str]:
    return [gap.reason for gap in convert(text.format(**parts)).gaps]


@pytest.mark.parametrize("kept", [KEPT, ROUNDABOUT, "self.log_prob = self.net(state).log_softmax(-1)"])
def test_what_the_acting_method_keeps_carries_gradients(kept: str) -> None:
    (reason,) = reasons(AGENT, kept=kept, loss=LOSS, decorator="# acts")
    assert "It reads self.log_prob, values of earlier calls, which carry no gradient in JAX" in reason


NONE = {
    "detached": {"kept": f"{KEPT}.detach()"},
    "detached where it is read": {"loss": LOSS.replace("self.log_prob", "self.log_prob.detach()")},
    "without gradients": {"decorator": "@torch.no_grad()"},
    "its numbers": {"kept": "self.log_prob = torch.tensor(dist.log_prob(action).tolist())"},
    "its numbers in a new tensor": {"kept": "self.log_prob = torch.FloatTensor(dist.log_prob(action))"},
    "another module's": {"kept": "self.log_prob = self.target(state).log_softmax(-1)"},
    "an action": {"kept": "self.log_prob = action.float()"},
}


@pytest.mark.parametrize("parts", NONE.values(), ids=NONE)
def test_what_carries_none_is_handed_to_the_step(parts: dict[str, str]) -> None:
    assert not reasons(AGENT, **{"kept": KEPT, "loss": LOSS, "decorator": "# acts", **parts})


SCRIPT = """\
import torch
from torch import nn


def cut(h):
    if isinstance(h, tuple):
        return tuple(cut(v) for v in h)
    return h.detach()


def same(h):
    return h * 1.0


net = nn.Linear(3, 3)
w = torch.zeros(3, requires_grad=True)
optimizer = torch.optim.SGD({trained}, lr=0.1)
x = torch.randn(5, 3)
{before}
for i in range(3):
    {first}
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {behind}
"""


@pytest.mark.parametrize(
    "parts",
    [
        {"before": "out = net(x)", "loss": "out.mean() + net(x).square().mean()", "behind": "out = net(x)"},
        {
            "before": "out = w * 2",
            "trained": "[w]",
            "loss": "(x @ w).square().mean() + out.sum()",
            "behind": "out = w * 2",
        },
        {"before": "out = net(x)", "loss": "(net(x) + out).mean()", "behind": "out = same(net(x))"},
    ],
    ids=["a module's", "a bare tensor's", "through a function"],
)
def test_a_value_from_before_the_loop_carries_gradients(parts: dict[str, str]) -> None:
    (reason,) = reasons(SCRIPT, **{"trained": "net.parameters()", "first": "pass", **parts})
    assert "It reads out, values of earlier calls, which carry no gradient in JAX" in reason


@pytest.mark.parametrize(
    "parts",
    [
        {"before": "out = net(x).detach()", "behind": "out = net(x).detach()"},
        {"before": "out = torch.zeros(5, 3)", "first": "out = cut(out)", "behind": "out = net(x + out)"},
        {"before": "out = torch.zeros(5, 3)", "behind": "with torch.no_grad():\n        out = net(x)"},
        {"before": "many = [x, x]\nout = sum([y * 2 for y in many])", "behind": "y = net(x)"},
    ],
    ids=["detached", "by a function of the file", "without gradients", "a name of a comprehension"],
)
def test_a_state_that_is_cut_off_is_handed_to_the_step(parts: dict[str, str]) -> None:
    loss = "(net(x) + out).square().mean()"
    assert not reasons(SCRIPT, **{"trained": "net.parameters()", "first": "pass", "loss": loss, **parts})


ATTACK = """\
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(4, 3)


def attack(x, y):
    x_adv = x.clone().detach()
    for i in range(3):
        x_adv.requires_grad_()
        loss = F.cross_entropy(model(x_adv), y)
        model.zero_grad()
        loss.backward()
        {step}
    return x_adv.detach()


print(attack(torch.randn(5, 4), torch.randint(0, 3, (5,))))
"""


@pytest.mark.parametrize(
    "step",
    [
        "x_adv = x_adv.detach() + 0.1 * x_adv.grad.sign()",
        "with torch.no_grad():\n            x_adv = x_adv + 0.1 * x_adv.grad.sign()",
        "grad = x_adv.grad.data\n        x_adv = (x_adv + 0.1 * grad).clamp(0, 1).detach()",
    ],
)
def test_an_input_that_is_moved_by_its_own_gradient_carries_none(step: str) -> None:
    assert not reasons(ATTACK, step=step)


@pytest.mark.parametrize("move", ["x_adv = x_adv + 0.1 * x_adv.grad.sign()", "x_adv = x_adv.detach() + x_adv.grad"])
def test_gradients_of_an_input_that_may_stay_add_up(move: str) -> None:
    step = f"with torch.no_grad():\n            if i % 2:\n                {move}"
    assert any("aren't zeroed" in reason for reason in reasons(ATTACK, step=step))
    either = step + "\n            else:\n                x_adv = x_adv - 0.1 * x_adv.grad"
    assert not any("aren't zeroed" in reason for reason in reasons(ATTACK, step=either))


RETURNS = """\
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.critic = nn.Linear(3, 1)
        self.optimizer = torch.optim.Adam(self.critic.parameters(), lr=0.01)

    def returns(self, states, rewards):
        values = self.critic(states)
        if len(rewards) == 1:
            return rewards, values
        {summed}
        return {returned}

    def learn(self, states, rewards):
        returns, values = self.returns({given})
        for _ in range(2):
            loss = (self.critic(states) - returns).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


agent = Agent()
agent.learn(torch.randn(4, 3), torch.randn(4, 1))
"""


@pytest.mark.parametrize(
    ("summed", "returned", "given", "carries"),
    [
        ("summed = rewards + values.detach()", "summed, values", "states, rewards", False),
        ("summed = rewards + values", "summed, values", "states, rewards", True),
        ("summed = rewards + values", "summed.detach(), values", "states, rewards", False),
        ("summed = rewards, values", "summed", "states, rewards", True),
        ("summed = rewards", "summed, values", "states, self.critic(states)", True),
    ],
)
def test_of_several_returned_values_each_is_looked_at(summed: str, returned: str, given: str, carries: bool) -> None:
    """``returns, values = self.returns()``: that the values carry gradients says nothing of the returns."""
    lost = reasons(RETURNS, summed=summed, returned=returned, given=given)
    assert bool(lost) is carries
    assert all("It reads returns" in reason for reason in lost)
