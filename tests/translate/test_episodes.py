"""Losses of whole episodes, as policy gradients have them: the step plays the episode, and isn't compiled."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

HEAD = """\
import gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.kept = []

    def forward(self, x):
        return self.fc(x).softmax(-1)

policy = Policy()
optimizer = torch.optim.Adam(policy.parameters())
env = gym.make("CartPole-v1")

def act(state):
    dist = Categorical(policy(torch.as_tensor(state)))
    action = dist.sample()
    return action.item(), dist.log_prob(action)

def select(state):
    action, log_prob = act(state)
    policy.kept.append(log_prob)
    return action
"""
UPDATE = """\
    optimizer.zero_grad()
    loss = torch.stack([-p * total for p in {kept}]).sum()
    loss.backward()
    optimizer.step()
"""
LOCAL = """
seen = []
for episode in range(9):
    state, total = env.reset(), 0.0
    log_probs = []
    for t in range(100):
        action, log_prob = act(state)
        log_probs.append(log_prob)
        seen.append({seen})
        state, reward, done, _ = env.step({given})
        total += reward
        if done:
            break
{update}{behind}"""
KEPT = """
def finish(total):
{update}    del policy.kept[:]

def play():
    for episode in range(9):
        state, total, done = env.reset(), 0.0, False
        while not done:
            action = select(state)
            state, reward, done, _ = env.step(action)
            total += reward
        finish(total)
{behind}
play()
"""


def local(given: str = "action", seen: str = "t", behind: str = "    print(total, seen)") -> str:
    return HEAD + LOCAL.format(given=given, seen=seen, update=UPDATE.format(kept="log_probs"), behind=behind)


def kept(behind: str = "") -> str:
    return HEAD + KEPT.format(update=UPDATE.format(kept="policy.kept"), behind=behind)


def test_an_episode_whose_log_probabilities_a_list_holds_is_played_in_the_loss() -> None:
    done = translate(local())
    assert not done.gaps, [gap.reason for gap in done.gaps]
    assert "nnx.jit" not in done.code
    assert any("isn't compiled" in note.reason for note in done.findings)
    body = done.code.partition("    def loss_fn(")[2].partition("\n\n")[0]
    order = ["log_probs = []", "for t in range(100):", "env.step(action)", "break", "return loss, (total, state)"]
    places = [body.find(line) for line in order[:4]]
    assert -1 not in places and places == sorted(places)
    assert "total" in body.rpartition("return")[2]


def test_an_episode_that_a_module_keeps_is_played_where_it_ends() -> None:
    """What only adds to a list of the policy is given the policy; the update is made where it was called."""
    done = translate(kept())
    assert not done.gaps, [gap.reason for gap in done.gaps]
    assert "def select(policy, state" in done.code and "action = select(policy, state" in done.code
    assert "while not done:" in done.code.partition("def loss_fn(")[2].partition("value_and_grad")[0]
    assert "del policy.kept[:]" in done.code.rpartition("train_step(")[2]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        pytest.param(kept("    select(env.reset())"), "carry no gradient", id="filled outside of the episode too"),
        pytest.param(local("policy(torch.ones(4))"), "env.step", id="arrays for code of which nothing is known"),
        pytest.param(local(seen="log_prob"), "read behind", id="arrays of the loss that are read later"),
    ],
)
def test_what_an_episode_may_not_do_is_said(source: str, why: str) -> None:
    gaps = translate(source).gaps
    assert any(why in gap.reason for gap in gaps), [gap.reason for gap in gaps]


FORWARD = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)
    def forward(self, x):
        out = self.fc(x)
        return out, {kept}

net = Net()
optimizer = torch.optim.Adam(net.parameters())
for _ in range(3):
    out, kept = net(torch.ones(2, 3))
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("taken", "written"),
    [
        ("out.detach().numpy()", "np.asarray(jax.lax.stop_gradient(out))"),
        ("out.sum().item()", "jax.lax.stop_gradient(out.sum()).item()"),
        ("out.argmax().item()", "out.argmax().item()"),
    ],
)
def test_a_forward_pass_that_takes_values_out_is_not_compiled(taken: str, written: str) -> None:
    done = translate(FORWARD.format(kept=taken))
    assert not done.gaps
    assert written in done.code and "nnx.jit" not in done.code
    assert any("takes values out" in note.reason for note in done.findings)


def test_a_number_taken_out_of_an_array_carries_no_gradient_in_a_loss() -> None:
    loss = "loss = out.square().mean() * out.mean().item()"
    done = translate(FORWARD.format(kept="None").replace("loss = out.square().mean()", loss))
    assert not done.gaps
    assert "jax.lax.stop_gradient(out.mean()).item()" in done.code and "@nnx.jit" not in done.code


@pytest.mark.parametrize(
    ("gives", "is_compiled"), [("Categorical(probs), self.value(x)", False), ("probs, self.value(x)", True)]
)
def test_a_module_that_gives_a_distribution_is_not_compiled_by_itself(gives: str, is_compiled: bool) -> None:
    made = "probs" if is_compiled else "dist.probs"
    done = translate(
        "import gym\nimport torch\nfrom torch import nn\nfrom torch.distributions import Categorical\n\n\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.actor, self.value = nn.Linear(4, 2), nn.Linear(4, 1)\n\n"
        f"    def forward(self, x):\n        probs = self.actor(x).softmax(-1)\n        return {gives}\n\n\n"
        "net, env = Net(), gym.make('CartPole-v1')\noptimizer = torch.optim.Adam(net.parameters())\n"
        "for _ in range(9):\n    state, values = env.reset(), []\n    for _ in range(5):\n"
        f"        dist, value = net(torch.FloatTensor(state))\n        action = {made}.argmax()\n"
        "        values.append(value - action)\n        state, _, _, _ = env.step(action.item())\n"
        "    loss = torch.cat(values).pow(2).mean()\n"
        "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
    )
    assert not done.gaps
    assert ("forward(net, " in done.code) == is_compiled
