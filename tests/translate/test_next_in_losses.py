"""Losses of ``model(next(batches))``: the batch is taken in front of the compiled step, once, and passed to it."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

SOURCE = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

xs, ys = torch.sin(torch.arange(24.0)).reshape(12, 2), torch.cos(torch.arange(12.0)).reshape(12, 1)


def cycle(loader):
    while True:
        for data in loader:
            yield data


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 1)

    def forward(self, x, y=None):
        out = self.fc(x)
        return out.pow(2).mean() if y is None else (out - y).pow(2).mean()


model = Net()
loader = DataLoader(TensorDataset(xs, ys), batch_size=3)
pairs, singles = cycle(loader), cycle(DataLoader(xs, batch_size=3))
batches = iter(loader)
losses = []
# train
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    {loss}
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
losses.append(float(next(singles).sum()))
"""


@pytest.mark.parametrize(
    ("loss", "passed"),
    [
        ("loss = model(next(singles))", "train_step(next(singles))"),
        ("loss = model(next(singles).to('cpu')) * 2", "train_step(next(singles))"),
        ("loss = model(*next(pairs))", "train_step(next(pairs))"),
        ("loss = model(*next(batches))", "(jax.tree.map(jnp.asarray, next(batches)))"),
        ("loss = model(next(batches)[0].cpu())", "(jax.tree.map(jnp.asarray, next(batches)))"),
        ("out = model.fc(next(singles))\n    loss = out.pow(2).mean()", "train_step(next(singles))"),
    ],
)  # fmt: skip
def test_the_next_batch_is_passed_to_the_step(loss: str, passed: str) -> None:
    run = trained(SOURCE.format(loss=loss))
    assert passed in run.translation.code


@pytest.mark.parametrize(
    "loss",
    [
        "loss = model(next(singles)) + model(next(singles))",  # which of them is first must not change
        "loss = model(next(singles)) if len(losses) > 2 else model(xs)",
        "loss = sum(model(next(singles)) for _ in range(2))",
        "loss = 0\n    for _ in range(2):\n        loss = loss + model(next(singles))",
    ],
)
def test_what_is_taken_now_and_then_or_several_times_is_left_and_marked(loss: str) -> None:
    done = convert(SOURCE.format(loss=loss))
    assert [gap.code for gap in done.gaps] == ["training-loop"]
