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


OWN_SCALE = """import torch
from torch import nn

model = nn.Linear(2, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x, scale = torch.randn(8, 2), torch.rand(1)
for _ in range(3):
    loss = (model(x) * scale).square().mean()
    opt.zero_grad()
    loss.backward()
    {}nn.utils.clip_grad_norm_(model.parameters(), {})
    opt.step()
    print(loss.item())
"""


def test_the_factor_of_clipping_has_a_name_of_its_own() -> None:
    done = convert(OWN_SCALE.format("", "0.5 * 2"))
    assert not done.gaps
    assert "    clipping = jnp.minimum((0.5 * 2) / (optax.tree.norm(grads) + 1e-6), 1.0)\n" in done.code
    assert "tree.map(lambda g: g * clipping.astype(g.dtype), grads)\n" in done.code


def test_a_norm_that_nobody_reads_is_computed_once() -> None:
    done = convert(OWN_SCALE.format("_ = ", "1.0"))
    assert not done.gaps and done.code.count("optax.tree.norm(grads)") == 1
    kept = convert(OWN_SCALE.format("norm = ", "1.0").replace("loss.item()", "loss.item(), norm.item()"))
    assert not kept.gaps
    assert "    norm = optax.tree.norm(grads)\n" in kept.code and "jnp.minimum(1.0 / (norm + 1e-6), 1.0)" in kept.code
