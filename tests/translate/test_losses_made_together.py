"""Two losses that are computed in front of both updates, by one target: each goes into its own step alone."""

from __future__ import annotations

from t2j_lsp import convert

TWO = """\
import torch
import torch.nn.functional as F
from torch import nn

first, second, teacher = nn.Linear(3, 1), nn.Linear(3, 1), nn.Linear(3, 1)
one = torch.optim.Adam(first.parameters())
other = torch.optim.Adam(second.parameters())
for x in torch.ones(4, 8, 3):
    with torch.no_grad():
        target = teacher(x)
    made = first(x)
    made_too = second(x)
    loss = F.mse_loss(made, target)
    loss_too = F.mse_loss(made_too, target)
    one.zero_grad()
    loss.backward()
    one.step()
    other.zero_grad()
    loss_too.backward()
    other.step()
"""


def test_a_loss_that_waits_for_one_step_and_is_part_of_another_is_written_once() -> None:
    done = convert(TWO)
    assert not done.gaps
    assert done.code.count("made_too - target") == 1
    assert "made_too" not in done.code.rpartition("for x in")[2]
