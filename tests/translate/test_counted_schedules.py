"""Schedulers that go on behind each update: their schedules are arguments of the optimizer's transformation."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

SOURCE = """\
import math

import torch
from torch import nn, optim
from torch.optim import lr_scheduler

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
x, y = torch.linspace(-1, 1, 24).reshape(8, 3), torch.linspace(0, 1, 8).reshape(8, 1)
losses, rates = [], []

# train
optimizer = optim.Adam(model.parameters(), lr=0.3)
scheduler = lr_scheduler.StepLR(optimizer, 3, gamma=0.5)
for epoch in range(4):
    for start in range(0, 8, 4):
        loss = ((model(x[start : start + 4]) - y[start : start + 4]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    rates.append(scheduler.get_last_lr()[0])
"""
ADAM, MADE = "optim.Adam(model.parameters(), lr=0.3)", "lr_scheduler.StepLR(optimizer, 3, gamma=0.5)"
LISTS = ("losses", "rates")
COUNTED = 1e-6
"""What the numbers may differ by: optax has rates of a count of 32 bits in float32."""


@pytest.mark.parametrize(
    "made",
    [
        MADE,
        "lr_scheduler.MultiStepLR(optimizer, [2, 5], gamma=0.1)",
        "lr_scheduler.ExponentialLR(optimizer, 0.8)",
        "lr_scheduler.ConstantLR(optimizer, 0.5, total_iters=3)",
        "lr_scheduler.LinearLR(optimizer, 0.1, total_iters=5)",
        "lr_scheduler.PolynomialLR(optimizer, 6, power=2.0)",
        "lr_scheduler.CosineAnnealingLR(optimizer, T_max=5, eta_min=0.01)",
        "lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3, T_mult=2)",
        "lr_scheduler.OneCycleLR(optimizer, 0.4, total_steps=9)",
        "lr_scheduler.OneCycleLR(optimizer, 0.4, total_steps=9, cycle_momentum=False)",
        "lr_scheduler.CyclicLR(optimizer, 0.1, 0.4, step_size_up=3)",
        "lr_scheduler.LambdaLR(optimizer, lambda step: max(0.1, 1 - step / 8))",
        "lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * step / 8)))",
        "lr_scheduler.LambdaLR(optimizer, lambda step: 0.9 ** (step // 2))",
    ],
)
def test_the_numbers_are_those_of_pytorch(made: str) -> None:
    assert MADE in SOURCE
    code = trained(SOURCE.replace(MADE, made), lists=LISTS, tolerance=COUNTED).translation.code
    assert "LRScheduler" not in code and "scheduler.step()" not in code
    assert "float(scheduler(optimizer.step.item()))" in code


@pytest.mark.parametrize(
    "made",
    [
        "optim.SGD(model.parameters(), lr=0.3, momentum=0.9, weight_decay=0.01)",
        "optim.SGD(model.parameters(), 0.3, momentum=0.9, dampening=0.1)",
        "optim.AdamW(model.parameters(), lr=1, betas=(0.8, 0.99))",
        "optim.RMSprop(model.parameters(), lr=0.1)",
        "optim.Adadelta(model.parameters())",
        "optim.Adamax(model.parameters(), lr=0.1)",
        "optim.NAdam(model.parameters(), lr=0.1)",
        "optim.RAdam(model.parameters(), lr=0.1)",
    ],
)
def test_every_optimizer_follows_it(made: str) -> None:
    code = trained(SOURCE.replace(ADAM, made), lists=LISTS, tolerance=COUNTED).translation.code
    assert "LRScheduler" not in code and "inject_hyperparams" not in code


@pytest.mark.parametrize(
    "made",
    [
        "optim.SGD(model.parameters(), lr=0.1, momentum=0.9)",
        "optim.AdamW(model.parameters(), lr=0.1)",
        "optim.RMSprop(model.parameters(), lr=0.1, momentum=0.5)",
    ],
)
def test_the_momentum_follows_its_own(made: str) -> None:
    cycle = "lr_scheduler.OneCycleLR(optimizer, 0.4, total_steps=9)"
    code = trained(SOURCE.replace(ADAM, made).replace(MADE, cycle), lists=LISTS, tolerance=COUNTED).translation.code
    assert "scheduler = one_cycle(0.4 / 25.0, 0.4, 0.4 / 25.0 / 10000.0, 9)\n" in code
    assert "= one_cycle(0.95, 0.85, 0.95, 9)\n" in code


def test_it_reads_like_optax() -> None:
    code = convert(SOURCE, helpers="import").code
    schedule = "scheduler = optax.exponential_decay(0.3, 3, 0.5, staircase=True)\n"
    assert f"# train\n{schedule}optimizer = nnx.Optimizer(model, optax.adam(scheduler), wrt=nnx.Param)\n" in code


def test_comments_stay_with_what_they_are_about() -> None:
    source = SOURCE.replace("# train\n", "# what updates\n").replace("scheduler = ", "# how fast\nscheduler = ")
    code = convert(source, helpers="import").code
    assert "# how fast\nscheduler = optax" in code and "# what updates\noptimizer = nnx" in code


IN_FUNCTIONS = """\
import torch
from torch import nn, optim

model = nn.Linear(3, 1)
x, y = torch.linspace(-1, 1, 24).reshape(8, 3), torch.linspace(0, 1, 8).reshape(8, 1)
losses, rates = [], []


def update(net, opt, inputs, targets):
    loss = ((net(inputs) - targets) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def epoch_of(net, opt, schedule):
    for start in range(0, 8, 4):
        losses.append(update(net, opt, x[start : start + 4], y[start : start + 4]))
        schedule.step()
    return schedule.get_last_lr()


# train
optimizer = optim.SGD(model.parameters(), lr=0.3)
scheduler = optim.lr_scheduler.StepLR(optimizer, 3)
for _ in range(3):
    rates += epoch_of(model, optimizer, scheduler)
"""


def test_an_update_is_followed_through_functions() -> None:
    code = trained(IN_FUNCTIONS, lists=LISTS, tolerance=COUNTED).translation.code
    assert "LRScheduler" not in code
    assert "return [float(schedule(opt.step.item()))]" in code


SECOND = "        scheduler.step()\n"
STEPS = f"        optimizer.step()\n{SECOND}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("    rates.append", "    scheduler.step()\n    rates.append", id="once an epoch, too"),
        pytest.param(STEPS, "        optimizer.step()\n", id="never"),
        pytest.param(SECOND, "        if epoch:\n            scheduler.step()\n", id="sometimes"),
        pytest.param(STEPS, f"{SECOND}        optimizer.step()\n", id="in front of the update"),
        pytest.param(STEPS, f"{STEPS}{SECOND}", id="twice"),
        pytest.param(
            STEPS, STEPS.replace(".step()\n", ".step()\n        if loss < 0:\n            break\n", 1), id="left"
        ),
        pytest.param(STEPS, f"{STEPS}        optimizer.param_groups[0]['lr'] *= 0.9\n", id="a rate that is set"),
        pytest.param("rates.append", "scheduler.last_epoch = epoch\n    rates.append", id="a count that is set"),
        pytest.param("rates.append", "torch.save(scheduler.state_dict(), 'f')\n    rates.append", id="saved"),
        pytest.param(
            STEPS, STEPS.replace("()\n", "()\n        rates += scheduler.get_last_lr()\n", 1), id="read between"
        ),
        pytest.param(MADE, "lr_scheduler.LambdaLR(optimizer, lambda step: 1 if step < 3 else 0.1)", id="a branch"),
        pytest.param(MADE, "lr_scheduler.LambdaLR(optimizer, float)", id="a function"),
        pytest.param(MADE, f"{MADE}\nother = lr_scheduler.ExponentialLR(optimizer, 0.9)", id="two schedulers"),
        pytest.param("scheduler = ", "losses.append(0 * len(optimizer.state))\nscheduler = ", id="used before it"),
        pytest.param("scheduler = ", "model = nn.Linear(3, 1)\nscheduler = ", id="another module"),
        pytest.param("for epoch", "kept = [scheduler]\nfor epoch", id="in a list"),
        pytest.param("for epoch", "optimizer = optim.SGD(model.parameters(), lr=0.1)\nfor epoch", id="made anew"),
    ],
)
def test_others_keep_their_scheduler(old: str, new: str) -> None:
    assert old in SOURCE
    done = convert(SOURCE.replace(old, new), helpers="import")
    assert done.gaps or "LRScheduler(" in done.code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        schedule.step()\n", "        schedule.step()\n        update(net, opt, x, y)\n"),
        ("epoch_of(model, optimizer, scheduler)\n", "epoch_of(model, optim.SGD(model.parameters()), scheduler)\n"),
        ("    opt.zero_grad()\n", "    opt.zero_grad()\n    if loss < 0:\n        return 0.0\n"),
        ("    return loss.item()\n", "    return loss.item() + opt.param_groups[0]['lr']\n"),
    ],
)
def test_functions_that_do_otherwise_keep_it(old: str, new: str) -> None:
    assert old in IN_FUNCTIONS
    done = convert(IN_FUNCTIONS.replace(old, new), helpers="import")
    assert done.gaps or "LRScheduler(" in done.code
