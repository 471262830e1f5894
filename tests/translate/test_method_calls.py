"""Methods of modules that act outside of the steps are compiled, where they take and give arrays."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

from .training_sides import trained

PROGRAM = """\
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Env:
    def __init__(self):
        self.state = np.linspace(-1, 1, 12).reshape(4, 3)

    def step(self, action):
        self.state = self.state + 0.1 * action[:, None]
        return self.state


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Linear(3, 2)
        self.critic = nn.Linear(3, 1)

    def value(self, x):
        return self.critic(x)

    def act(self, x, action=None):
        logits = self.actor(x)
        dist = Categorical(logits=logits)
        if action is None:
            action = logits.argmax(dim=1)
        return action, dist.log_prob(action), self.critic(x)


env = Env()
model = Agent()
state = torch.linspace(-1, 1, 12).reshape(4, 3)
losses, states = [], []
# train
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for episode in range(3):
    obs = state
    for step in range(3):
        with torch.no_grad():
            action, log_prob, value = model.act(obs)
        obs = torch.as_tensor(env.step(action.numpy()))
    with torch.no_grad():
        last = model.value(obs)
    for epoch in range(2):
        optimizer.zero_grad()
        _, new_log_prob, new_value = model.act(state)
        loss = -(new_log_prob * last[:, 0]).mean() + (new_value - last).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
"""
ACTS, VALUE = 'action, log_prob, value = call_method(model, "act", obs)', 'last = call_method(model, "value", obs)'


@pytest.mark.jax
def test_compiled_methods_give_what_pytorch_gives() -> None:
    code = trained(PROGRAM).translation.code
    assert ACTS in code and VALUE in code
    assert "_, new_log_prob, new_value = model.act(state)" in code  # in the step, which is compiled as a whole


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            "        return self.critic(x)", "        print('value')\n        return self.critic(x)", id="prints"
        ),
        pytest.param(
            "        return self.critic(x)", "        self.seen = x\n        return self.critic(x)", id="keeps"
        ),
        pytest.param(
            "        return self.critic(x)", "        return self.critic(x).mean().item()", id="gives a number"
        ),
        pytest.param("model.value(obs)", "model.value(x=obs)", id="named"),
        pytest.param("model.value(obs)", "model.value(obs.tolist())", id="takes a list"),
    ],
)
def test_other_methods_are_called_as_they_are(old: str, new: str) -> None:
    assert old in PROGRAM
    assert 'call_method(model, "value"' not in translate(PROGRAM.replace(old, new, 1)).code


@pytest.mark.parametrize(
    "grown",
    [
        "obs = torch.cat([torch.as_tensor(env.step(action.numpy())), obs])",
        "states.append(env.step(action.numpy()))\n        obs = torch.tensor(states)",
    ],
)
def test_what_grows_with_each_call_is_not_compiled(grown: str) -> None:
    code = translate(PROGRAM.replace("obs = torch.as_tensor(env.step(action.numpy()))", grown)).code
    assert ACTS not in code and VALUE in code


def test_modules_that_act_in_a_loop_are_compiled() -> None:
    source = PROGRAM.replace("action, log_prob, value = model.act(obs)", "action = model.actor(obs).argmax(dim=1)")
    code = translate(source).code
    assert "def forward_step(model, obs):\n    return model.actor(obs).argmax(axis=1)" in code
    assert "action = bound_jit(forward_step, model)(obs)" in code
