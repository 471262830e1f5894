"""Transitions that an agent keeps in NumPy's arrays: what a step takes of them are arrays."""

from __future__ import annotations

from t2j_lsp import convert

SOURCE = """\
import numpy as np
import torch as T
import torch.nn as nn
import torch.optim as optim


class Network(nn.Module):
    def __init__(self, lr):
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.optimizer = optim.Adam(self.parameters(), lr=lr)
        self.loss = nn.MSELoss()
        self.device = T.device("cuda:0" if T.cuda.is_available() else "cpu")
        self.to(self.device)

    def forward(self, state):
        return self.fc(state)


class Agent:
    def __init__(self, size, batch_size):
        self.size, self.batch_size = size, batch_size
        self.network = Network(1e-3)
        self.states = np.zeros((size, 4), dtype=np.float32)
        self.actions = np.zeros(size, dtype=np.int32)
        self.ended = np.zeros(size, dtype=bool)

    def learn(self, rng):
        self.network.optimizer.zero_grad()
        batch = rng.choice(self.size, self.batch_size, replace=False)
        rows = np.arange(self.batch_size, dtype=np.int32)
        states = T.tensor(self.states[batch]).to(self.network.device)
        ended = T.tensor(self.ended[batch]).to(self.network.device)
        actions = self.actions[batch]
        chosen = self.network.forward(states)[rows, actions]
        following = self.network.forward(states)
        following[ended] = 0.0
        target = T.max(following, dim=1)[0]
        loss = self.network.loss(target, chosen).to(self.network.device)
        loss.backward()
        self.network.optimizer.step()
        return loss.item()
"""


def test_batches_are_made_in_front_of_the_step() -> None:
    """As in the tutorials that keep a replay memory in arrays: a device of the network's is no way of its gradients."""
    translation = convert(SOURCE)
    assert not translation.gaps
    assert "states = jnp.array(self.states[batch])" in translation.code
    assert "chosen = network(states)[rows, actions]" in translation.code


def test_a_mask_is_known_by_the_array_that_it_is_made_of() -> None:
    assert "following = set_where(following, ended, 0.0)" in convert(SOURCE).code
    numbers = convert(SOURCE.replace("dtype=bool", "dtype=np.int64"))
    assert "following = following.at[ended].set(0.0)" in numbers.code


def test_one_array_of_numpy_may_be_a_mask_and_stays_out() -> None:
    gaps = convert(SOURCE.replace("[rows, actions]", "[actions]")).gaps
    assert any("an array of numpy" in gap.reason for gap in gaps)
