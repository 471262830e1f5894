"""Conversions of ``rules/replay_buffers.py``: the buffer stays PyTorch's, and its batches become JAX's."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import NamedTuple

import jax
import pytest
import torch

from t2j_lsp import convert

HEAD = "import torch\nfrom torch import nn\nfrom stable_baselines3.common.buffers import ReplayBuffer\n\n"
ROWS = [
    ("ReplayBuffer(9, space, actions, device)", 'ReplayBuffer(9, space, actions, device="cpu")'),
    (
        "ReplayBuffer(9, space, actions, n_envs=4, device='cuda', handle_timeout_termination=False)",
        'ReplayBuffer(9, space, actions, device="cpu", n_envs=4, handle_timeout_termination=False)',
    ),
    ("buffer.sample(32)", "jax.tree.map(jnp.asarray, buffer.sample(32))"),
    ("buffer.sample(batch_size=32, env=None)", "jax.tree.map(jnp.asarray, buffer.sample(32))"),
    ("buffer.add(x, x, a, r, d, infos)", "buffer.add(x, x, a, r, d, infos)"),
    ("other.sample(32)", "other.sample(32)"),
]


@pytest.mark.parametrize(("before", "after"), ROWS, ids=[row[0] for row in ROWS])
def test_what_a_call_becomes(before: str, after: str) -> None:
    arguments = "buffer: ReplayBuffer, other, space, actions, device, x, a, r, d, infos"
    done = convert(f"{HEAD}\ndef make({arguments}):\n    return {before}\n")
    assert not done.gaps
    assert done.code.endswith(f"    return {after}\n")


@pytest.mark.parametrize(
    "head", ["import stable_baselines3.common.buffers as b\n", "from stable_baselines3.common import buffers as b\n"]
)
def test_it_is_imported_by_name(head: str) -> None:
    code = convert(f"import torch\n{head}\nmemory = b.DictReplayBuffer(9, None, None)\ny = torch.ones(2)\n").code
    assert "from stable_baselines3.common.buffers import DictReplayBuffer\n" in code
    assert 'memory = DictReplayBuffer(9, None, None, device="cpu")\n' in code


class Samples(NamedTuple):
    observations: torch.Tensor
    rewards: torch.Tensor


class ReplayBuffer:
    """As much of Stable-Baselines3's as the program uses: it gives PyTorch's tensors."""

    def __init__(self, buffer_size: int, observation_space: object, action_space: object, device: str) -> None:
        self.device = torch.device(device)

    def sample(self, batch_size: int) -> Samples:
        return Samples(*(torch.arange(2.0 * batch_size, device=self.device).reshape(-1, 2) for _ in range(2)))


def test_batches_are_jaxs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stable_baselines3", "stable_baselines3.common", "stable_baselines3.common.buffers"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules["stable_baselines3.common.buffers"], "ReplayBuffer", ReplayBuffer, raising=False)
    program = """device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
buffer = ReplayBuffer(9, None, None, device)
data = buffer.sample(3)
net = nn.Linear(2, 1)
y = net(data.observations) + data.rewards.flatten()[:1]
"""
    space: dict[str, object] = {}
    exec(convert(HEAD + program).code, space)
    assert isinstance(space["y"], jax.Array) and space["y"].shape == (3, 1)
