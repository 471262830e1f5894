"""``isinstance(self.scheduler, ReduceLROnPlateau)``: trainers that take schedules of any kind, and are given one."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp import convert

from .side_by_side import sides

PROGRAM = """\
from typing import Any, Optional

import torch
from torch import nn
from torch.optim import lr_scheduler

x = torch.linspace(-1, 1, 12).reshape(4, 3)


class Trainer:
    def __init__(self, net: nn.Module, optimizer: torch.optim.Optimizer, scheduler: Optional[Any] = None):
        self.net, self.optimizer = net, optimizer
        self.scheduler = scheduler

    def fit(self):
        out = []
        for i in range(4):
            self.optimizer.zero_grad()
            loss = (self.net(x) - i).pow(2).mean()
            loss.backward()
            self.optimizer.step()
            if self.scheduler is not None:
                if isinstance(self.scheduler, {asked}):
                    self.scheduler.step(loss.item())
                else:
                    self.scheduler.step()
            out += [loss.item(), self.optimizer.param_groups[0]["lr"]]
        return out


net = nn.Linear(3, 1)
for p in net.parameters():
    nn.init.constant_(p, 0.2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
{made}
values = trainer.fit()
"""
PLATEAU = "trainer = Trainer(net, optimizer, lr_scheduler.ReduceLROnPlateau(optimizer, patience=0))"
STEPS = "trainer = Trainer(net, optimizer, scheduler=lr_scheduler.StepLR(optimizer, 1, 0.5))"
NAMED = "scheduler = lr_scheduler.StepLR(optimizer, 2)\ntrainer = Trainer(net, optimizer, scheduler)"
ASKED = "torch.optim.lr_scheduler.ReduceLROnPlateau"


@pytest.mark.parametrize("made", [PLATEAU, STEPS, NAMED])
@pytest.mark.parametrize("asked", [ASKED, "lr_scheduler.ReduceLROnPlateau"])
def test_the_branch_of_the_schedule_that_is_given_stays(made: str, asked: str) -> None:
    pair = sides(PROGRAM.format(made=made, asked=asked), "asked_schedules")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.values, pair.torch.values, rtol=1e-5)
    assert len(set(pair.torch.values[1::2])) > 1, "the rate is changed"


def test_the_branch_is_named() -> None:
    notes = [f.reason for f in convert(PROGRAM.format(made=STEPS, asked=ASKED)).findings]
    assert any("self.scheduler is another schedule wherever the file gives it one" in note for note in notes)


@pytest.mark.parametrize(
    "made",
    [
        "trainer = Trainer(net, optimizer, build(optimizer))",
        f"{STEPS}\nnet2 = nn.Linear(3, 1)\nother = torch.optim.SGD(net2.parameters(), lr=0.1)\n"
        "trainer2 = Trainer(net2, other, lr_scheduler.ReduceLROnPlateau(other))",
        f"{STEPS}\ntrainer.scheduler = make()",
    ],
)
def test_where_it_may_be_another_one_both_branches_stay(made: str) -> None:
    gaps = convert(PROGRAM.format(made=made, asked=ASKED)).gaps
    assert any("ReduceLROnPlateau passed as a value" in gap.reason for gap in gaps)
