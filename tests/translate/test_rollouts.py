"""What a loop collects without gradients in front of its update: rollouts that act outside of JAX, and returns."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

ROLLOUT = """\
import numpy as np
import torch
from torch import nn

net, critic = nn.Linear(3, 2), nn.Linear(3, 1)
state, losses = np.linspace(-1, 1, 6).reshape(2, 3), []
# train
optimizer = torch.optim.Adam([*net.parameters(), *critic.parameters()], lr=0.01)
for update in range(4):
    states, actions, rewards = [], [], []
    with torch.no_grad():
        for _ in range(3):
            x = torch.from_numpy(state)
            action = net(x).argmax(1)
            {act}
            states.append(x)
            actions.append(action)
            rewards.append(x.sum(1))
        returns, R = [], critic(torch.from_numpy(state)).squeeze(1)
        for r in reversed(rewards):
            R = r + 0.9 * R
            {kept}
    x = torch.cat(states)
    advantage = torch.cat(returns) - critic(x).squeeze(1)
    chosen = net(x).log_softmax(1).gather(1, torch.cat(actions)[:, None]).squeeze(1)
    loss = -(chosen * advantage.detach()).mean() + advantage.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""
ACTS = "state = state * 0.9 + action.numpy()[:, None]"
KEPT = ["returns.insert(0, R)", "returns += [R]", "returns = [R] + returns"]


@pytest.mark.parametrize("kept", KEPT)
def test_a_rollout_stands_in_front_of_its_step(kept: str) -> None:
    run = trained(ROLLOUT.format(act=ACTS, kept=kept), ["net", "critic"])
    code = run.translation.code
    loss_fn, _, loop = code.partition("for update in range(4):")
    assert "actions.append(action)" in loop and "actions.append" not in loss_fn
    assert "def train_step(" in loss_fn and "bound_jit(train_step, " in loop


@pytest.mark.parametrize("kept", KEPT)
def test_what_a_block_in_the_step_puts_into_lists_carries_no_gradient(kept: str) -> None:
    run = trained(ROLLOUT.format(act="pass", kept=kept), ["net", "critic"])
    assert len(run.torch["losses"]) == 4


def test_lists_of_a_function_that_grow_by_more_carry_none() -> None:
    code = convert(
        "import torch\nfrom torch import nn\n\n\ndef f(net: nn.Linear, x: torch.Tensor):\n    kept = []\n"
        "    with torch.no_grad():\n        kept += [net(x)]\n    return kept[0] + net(x)\n"
    ).code
    assert "    kept += [jax.lax.stop_gradient(net(x))]\n" in code


def test_lists_in_attributes_of_a_module_carry_none() -> None:
    code = convert(
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.fc, self.seen, self.names = nn.Linear(3, 1), [], []\n\n"
        "    def forward(self, x):\n        with torch.no_grad():\n            self.seen.append(self.fc(x))\n"
        "            self.names.append('x')\n"
        "        return self.fc(x) + self.seen[-1] * len(self.names)\n"
    ).code
    assert "        self.seen.append(jax.lax.stop_gradient(self.fc(x)))\n        self.names.append('x')\n" in code
