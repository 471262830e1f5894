"""A scheduler that is a part of a joined one in one branch, and alone in the other, as in torchvision's references."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

SOURCE = """\
import torch
from torch import nn, optim
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
x, y = torch.linspace(-1, 1, 24).reshape(8, 3), torch.linspace(0, 1, 8).reshape(8, 1)
losses, rates = [], []
warmup = 2

# train
optimizer = optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
main = CosineAnnealingLR(optimizer, T_max=7 - warmup, eta_min=0.01)
if warmup > 0:
    first = LinearLR(optimizer, start_factor=0.1, total_iters=warmup)
    scheduler = SequentialLR(optimizer, schedulers=[first, main], milestones=[warmup])
else:
    scheduler = main
for _ in range(7):
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
    rates.append(scheduler.get_last_lr()[0])
"""
JOINED = "SequentialLR(optimizer, schedulers=[first, main], milestones=[warmup])"
MAIN = "CosineAnnealingLR(optimizer, T_max=7 - warmup, eta_min=0.01)"


@pytest.mark.parametrize("warmup", [0, 2])
def test_both_branches_set_the_rates_of_pytorch(warmup: int) -> None:
    source = SOURCE.replace("warmup = 2", f"warmup = {warmup}")
    code = trained(source, lists=("losses", "rates")).translation.code
    assert "    scheduler = LRScheduler(optimizer, main)\n" in code
    assert "optax.join_schedules([first, main], [warmup])" in code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    scheduler = main\n", "    scheduler = main\n    main.step()\n"),
        (JOINED, "optim.lr_scheduler.ChainedScheduler([first, main])"),
        (MAIN, "optim.lr_scheduler.OneCycleLR(optimizer, 0.5, total_steps=9)"),
    ],
)  # fmt: skip
def test_others_are_gaps(old: str, new: str) -> None:
    assert old in SOURCE
    assert convert(SOURCE.replace(old, new)).gaps
