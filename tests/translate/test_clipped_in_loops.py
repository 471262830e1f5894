"""Gradients that a loop over the parameters clips, as `clip_grad_value_` does: DQN programs are written so."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

SOURCE = """\
import torch
from torch import nn

LIMIT = 0.05
model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
x = torch.sin(torch.arange(8.0)).reshape(4, 2)
losses = []
# train
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(4):
    loss = (model(x) - 3).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    for p in model.parameters():
        {clipped}
    optimizer.step()
    losses.append(loss.item())
"""


@pytest.mark.parametrize(
    ("clipped", "limit"),
    [
        ("p.grad.data.clamp_(-1, 1)", "-1, 1"),
        ("p.grad.data.clamp_(-1, 2)", "-1, 2"),
        ("p.grad.clamp_(-LIMIT, LIMIT)", "-LIMIT, LIMIT"),
        ("if p.grad is not None:\n            p.grad.data.clamp_(-0.05, 0.05)", "-0.05, 0.05"),
    ],
)
def test_a_loop_clips_as_clip_grad_value_does(clipped: str, limit: str) -> None:
    run = trained(SOURCE.format(clipped=clipped))
    assert f"grads = jax.tree.map(lambda g: jnp.clip(g, {limit}), grads)" in run.translation.code


@pytest.mark.parametrize(
    "clipped",
    [
        "p.grad.data.clamp_(max=1)",
        "p.data.clamp_(-1, 1)",
        "p.grad.data.clamp_(-p.sum(), p.sum())",
    ],
)
def test_what_is_no_such_clipping_is_not_taken_for_one(clipped: str) -> None:
    done = convert(SOURCE.format(clipped=clipped))
    assert done.gaps or "jnp.clip(g" not in done.code
