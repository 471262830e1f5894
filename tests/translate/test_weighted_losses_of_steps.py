"""Losses that hold an array are modules: what a compiled function is given of them is no static argument."""

from __future__ import annotations

import numpy as np
import pytest

from .side_by_side import sides

PROGRAM = """\
import torch
from torch import nn


def run_epoch(model, x, y, loss_function{annotation}, optimizer=None):
    training = optimizer is not None
    model.train() if training else model.eval()
    total = 0.0
    for i in range(0, 12, 4):
        with torch.set_grad_enabled(training):
            out = model(x[i:i + 4])
            loss = loss_function(out, y[i:i + 4])
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        total += loss.item()
    return total


model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3))
for p in model.parameters():
    nn.init.constant_(p, 0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.linspace(-1, 1, 36).reshape(12, 3), torch.arange(12) % 3
weight = torch.tensor([1.0, 2.0, 0.5])
criterion = nn.CrossEntropyLoss({options})
losses = []
for epoch in range(3):
    losses += [run_epoch(model, x, y, criterion, optimizer), run_epoch(model, x, y, criterion)]
"""


@pytest.mark.parametrize("annotation", ["", ": nn.Module", ": nn.CrossEntropyLoss"])
@pytest.mark.parametrize("options", ["weight=weight", "weight", "label_smoothing=0.1", ""])
def test_a_loss_with_weights_is_handed_on(annotation: str, options: str) -> None:
    pair = sides(PROGRAM.format(annotation=annotation, options=options), "weighted_losses_of_steps")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)
    assert len(set(pair.torch.losses)) == 6
