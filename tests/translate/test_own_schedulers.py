"""Schedulers that a file derives from PyTorch's have the helper for their base, if they only say what the rate is."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

POLY = """\
import math

import torch
from torch import nn, optim
from torch.optim.lr_scheduler import _LRScheduler, StepLR


class PolyLR(_LRScheduler):
    def __init__(self, optimizer, max_iters, power=0.9, last_epoch=-1, min_lr=1e-6):
        self.power = power
        self.max_iters = max_iters
        self.min_lr = min_lr
        super(PolyLR, self).__init__(optimizer, last_epoch)

    def get_lr(self):
        return [max(base_lr * self.left() ** self.power, self.min_lr) for base_lr in self.base_lrs]

    def left(self):
        return 1 - self.last_epoch / self.max_iters


model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
x, y = torch.linspace(-1, 1, 24).reshape(8, 3), torch.linspace(0, 1, 8).reshape(8, 1)
losses, rates = [], []

# train
optimizer = optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
scheduler = PolyLR(optimizer, 9, power=0.7)
for _ in range(6):
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
    rates.append(scheduler.get_last_lr()[0])
"""
BASE, CALL, RATES = "PolyLR(_LRScheduler)", "PolyLR(optimizer, 9, power=0.7)", "for base_lr in self.base_lrs]"
SUPER, METHOD = "super(PolyLR, self).__init__(optimizer, last_epoch)", "    def left(self):\n"


def test_it_sets_the_rates_of_pytorch() -> None:
    code = trained(POLY, lists=("losses", "rates")).translation.code
    assert "class PolyLR(OwnLRScheduler):" in code
    assert "optax.inject_hyperparams(optax.sgd)(learning_rate=0.3, momentum=0.9)" in code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SUPER, "super().__init__(optimizer)"),
        (SUPER, "super().__init__(optimizer, last_epoch=last_epoch)"),
        (BASE, "PolyLR(optim.lr_scheduler.LRScheduler)"),
        (CALL, "PolyLR(optimizer=optimizer, max_iters=9, last_epoch=-1)"),
    ],
)
def test_it_may_be_made_in_other_ways(old: str, new: str) -> None:
    done = convert(POLY.replace(old, new))
    assert not done.gaps
    assert "class PolyLR(OwnLRScheduler):" in done.code


def test_the_optimizer_may_be_made_in_a_file_of_its_own() -> None:
    assert not convert(POLY.partition("model = ")[0]).gaps


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(METHOD, "    def step(self):\n        super().step()\n\n" + METHOD, id="its own step"),
        pytest.param(RATES, "for base_lr in [g['initial_lr'] for g in self.optimizer.param_groups]]", id="groups"),
        pytest.param(RATES, "for base_lr in self.base_lrs if self._step_count]", id="the base's count of calls"),
        pytest.param("self.min_lr = min_lr", "self.min_lr, self.last_epoch = min_lr, 3", id="a count of its own"),
        pytest.param(SUPER, "super().__init__(optimizer, max_iters)", id="a count to begin with"),
        pytest.param(CALL, "PolyLR(optimizer, 9, last_epoch=4)", id="a count that a call gives"),
        pytest.param(SUPER, SUPER + "\n        register(self)", id="something outside that is given it"),
        pytest.param(BASE, "PolyLR(_LRScheduler, Logged)", id="several bases"),
        pytest.param(CALL, CALL + "\nother = StepLR(optimizer, 2)", id="another schedule of the same rate"),
        pytest.param(CALL, CALL + "\nother = PolyLR(optimizer, 3)", id="two of them"),
        pytest.param(
            "model.parameters(), lr=0.3",
            "[{'params': model[0].parameters()}, {'params': model[2].parameters(), 'lr': 0.1}], lr=0.3",
            id="rates for groups",
        ),
    ],
)
def test_what_does_more_is_a_gap(old: str, new: str) -> None:
    done = convert(POLY.replace(old, new))
    assert any("a custom schedule" in gap.reason for gap in done.gaps)
    assert "OwnLRScheduler" not in done.code
