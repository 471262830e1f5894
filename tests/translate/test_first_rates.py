"""Schedules start from the rate that an optimizer has when they are made, also where only the optimizer knows it."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

PROGRAM = """\
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, MultiplicativeLR


def schedule_of(optimizer, warm, last_epoch=-1):
    def factor(step):
        return min(1.0, step / warm)

    return {made}


config = {{"lr": float("0.1")}}
initial_lr = 3.0
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD({given}, lr=config["lr"])
scheduler = schedule_of(optimizer, 4)
rates = []
for step in range(6):
    optimizer.zero_grad()
    model(torch.ones(2, 3)).mean().backward()
    optimizer.step()
    scheduler.step()
    rates.append(round(scheduler.get_last_lr()[0], 6))
print(rates)
"""
GROUPS = '[{"params": [model.weight], "weight_decay": 0.1}, {"params": [model.bias]}]'


@pytest.mark.parametrize(
    "made",
    [
        "LambdaLR(optimizer, factor, last_epoch)",
        "LambdaLR(optimizer, lambda step: factor(step) * 2)",
        "LambdaLR(optimizer, lambda initial_lr: factor(initial_lr))",
        "LambdaLR(optimizer, lambda step: factor(step) * initial_lr)",
        "MultiplicativeLR(optimizer, lambda step: 1 - factor(step) / 2)",
    ],
)
@pytest.mark.parametrize("given", ["model.parameters()", GROUPS], ids=["one group", "two groups"])
def test_a_schedule_of_a_rate_that_only_the_optimizer_has(
    made: str, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = PROGRAM.format(made=made, given=given)
    done = convert(source)
    assert not done.gaps, [gap.reason for gap in done.gaps]
    exec(source, {})
    expected = capsys.readouterr().out
    exec(done.code, {})
    assert capsys.readouterr().out == expected


LATER = """import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR


class Settings:
    rate = 0.5


def other(lr):
    lr = lr + 1
    return lr


lr, settings = 0.5, Settings()
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr={rate})
scheduler = LambdaLR(optimizer, lambda step: 0.9 ** step)
rates = []
for step in range(4):
    optimizer.zero_grad()
    model(torch.ones(2, 3)).mean().backward()
    optimizer.step()
    scheduler.step()
    rates.append(round(scheduler.get_last_lr()[0], 6)){changed}
print(rates)
"""


@pytest.mark.parametrize(("rate", "changed"), [("lr", "lr = 7.0"), ("settings.rate", "settings.rate *= 3")])
def test_a_rate_that_has_another_value_later_is_read_once(
    rate: str, changed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = LATER.format(rate=rate, changed=f"\n    {changed}")
    done = convert(source)
    assert not done.gaps and f"lambda step, initial_lr={rate}: " in done.code
    exec(source, {})
    expected = capsys.readouterr().out
    exec(done.code, {})
    assert capsys.readouterr().out == expected


def test_a_rate_that_stays_the_same_stands_in_the_schedule() -> None:
    assert "lambda step: lr * " in convert(LATER.format(rate="lr", changed="")).code
