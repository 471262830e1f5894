"""Updates that code between the loss and the step jumps over are not made."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

SKIPPED = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

model = nn.Linear(3, 1)
batches = [(torch.tensor([[1., 2, 3], [k, 0, -1]]), torch.tensor([[4. * k], [0.5]])) for k in range(6)]
# train
opt = torch.optim.SGD(model.parameters(), lr=0.05)
losses, counts = [], []
for x, y in batches:
    opt.zero_grad()
    loss = F.mse_loss(model(x), y)
    {before}
        counts.append(loss.item())
        continue
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 100.0)
    {between}
        continue
    opt.step()
    losses.append(loss.item())
counts.append(0.0)
"""


@pytest.mark.parametrize(
    ("before", "between"),
    [("if loss.item() > 13:", "if norm < 0:"), ("if not torch.isfinite(loss):", "if norm > 16:")],
)
def test_a_batch_that_is_skipped_changes_no_parameter(before: str, between: str) -> None:
    run = trained(SKIPPED.format(before=before, between=between), lists=("losses", "counts"))
    assert len(run.torch["losses"]) < 6
    assert "apply_gradients(model, opt, grads)" in run.translation.code


def test_a_function_that_gives_up_makes_no_step() -> None:
    source = SKIPPED.format(before="if loss.item() > 13:", between="if norm < 0:")
    head, _, loop = source.partition("for x, y in batches:\n")
    loop = loop.replace("counts.append(0.0)\n", "").replace("        continue", "        return")
    call = "for x, y in batches:\n    step(x, y)\ncounts.append(0.0)\n"
    run = trained(f"{head}def step(x, y):\n{loop}{call}", lists=("losses", "counts"))
    assert len(run.torch["losses"]) < 6


def test_a_loop_that_ends_with_a_bad_loss_is_told_where_gradients_add_up() -> None:
    text = """\
import torch
from torch import nn

net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
opt.zero_grad()
for i in range(6):
    x = torch.randn(4, 3)
    loss = net(x).mean()
    if loss.item() > 3:
        continue
    loss.backward()
    if i % 2:
        opt.step()
        opt.zero_grad()
"""
    assert any("isn't converted" in gap.reason for gap in convert(text).gaps)
    assert not convert(text.replace("        continue", "        raise ValueError(loss)")).gaps


def test_an_error_ends_the_program_and_skips_nothing() -> None:
    text = SKIPPED.format(before="if loss.item() > 1e9:", between="if norm < 0:")
    done = convert(text.replace("        continue", '        raise ValueError("diverged")'))
    assert not done.gaps
    assert "train_step(model, opt, x, y)" in done.code and "apply_gradients" not in done.code


ADDED_UP = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

model = nn.Linear(3, 1)
batches = [(torch.tensor([[1., 2, 3], [k, 0, -1]]), torch.tensor([[4. * k], [0.5]])) for k in range(6)]
# train
opt = torch.optim.SGD(model.parameters(), lr=0.02)
losses, counts = [], []
opt.zero_grad()
for k, (x, y) in enumerate(batches):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    losses.append(loss.item())
    {skip}
    opt.step()
    {zero}
counts.append(0.0)
"""


@pytest.mark.parametrize(
    ("skip", "zero"),
    [
        ("if k % 2 == 0:\n        continue", "opt.zero_grad()"),
        ("if k % 3 != 2: continue", "model.zero_grad()"),
        ("counts.append(k)", "if k % 2 == 0:\n        continue\n    opt.zero_grad()"),
    ],
)
def test_gradients_whose_zeroing_is_skipped_add_up(skip: str, zero: str) -> None:
    run = trained(ADDED_UP.format(skip=skip, zero=zero), lists=("losses", "counts"))
    assert "accumulate_gradients(model, grads, x, y)" in run.translation.code
