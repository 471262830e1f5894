"""Optimizers of different parts of a module: by which parts one step updates, and what gradients they leave behind."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

HEAD = """\
import torch
import torch.nn as nn
from torch.optim import SGD, Adam, AdamW


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 5)
        self.head = nn.Linear(5, 4)

    def forward(self, x):
        return torch.tanh(self.head(torch.tanh(self.first(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = Inner()
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.base(x))


"""
TRAIN = """\
def train(model, optimizer, epochs):
    for epoch in range(epochs):
        {first}
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        {last}
        losses.append(loss.item())


"""
DATA = """\
x, y = torch.linspace(-1, 2, 24).reshape(8, 3), torch.linspace(0, 1, 16).reshape(8, 2) ** 2
losses = []
model, other = Net(), Net()
"""
ZERO = "optimizer.zero_grad()"
LOOP = f"for _ in range(3):\n    {ZERO}\n    loss = ((model(x) - y) ** 2).mean()\n    loss.backward()\n" + (
    "    optimizer.step()\n    losses.append(loss.item())\n"
)
TRAININGS = {
    "all of one, the head of another": (
        "train(model, SGD(model.parameters(), lr=0.2, momentum=0.9), 3)\n"
        "train(other, AdamW(other.head.parameters(), lr=0.05, weight_decay=0.3), 3)\n"
    ),
    "two parts": (
        "train(model, Adam(model.head.parameters(), lr=0.05), 3)\n"
        "train(other, SGD(other.base.parameters(), lr=0.2, momentum=0.9), 3)\n"
    ),
    "a part of a part, whose name another has": (
        "train(model, Adam(model.base.head.parameters(), lr=0.05), 3)\n"
        "train(other, Adam(other.parameters(), lr=0.05), 3)\n"
    ),
}
ONE_AFTER_THE_OTHER = (
    f"optimizer = Adam(model.head.parameters(), lr=0.05)\n{LOOP}optimizer = Adam(model.parameters(), lr=0.01)\n{LOOP}"
)
PARTS = {
    "all of one, the head of another": 'lambda path, _: path[0] == "head"',
    "two parts": 'lambda path, _: path[0] == "base"',
    "a part of a part, whose name another has": 'lambda path, _: path[:2] == ("base", "head")',
}


@pytest.mark.jax
@pytest.mark.parametrize("name", TRAININGS)
def test_an_optimizer_says_which_part_it_updates(name: str) -> None:
    source = f"{HEAD}{TRAIN.format(first=ZERO, last='pass')}{DATA}\n# train\n{TRAININGS[name]}"
    run = trained(source, modules=("model", "other"))
    assert PARTS[name] in run.translation.code.replace("\n    ", "")
    assert "nnx.DiffState(0, optimizer.wrt)" in run.translation.code


@pytest.mark.jax
def test_loops_with_optimizers_of_one_name_update_what_each_has() -> None:
    source = f"{HEAD}{DATA}\n# train\n{ONE_AFTER_THE_OTHER}"
    code = trained(source, modules=("model", "other")).translation.code
    assert "optimizer.update(model.head, grads.head)" in code and "optimizer.update(model, grads)" in code


@pytest.mark.parametrize(
    "clipped", ["nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "print(model.head.weight.grad)"]
)
def test_gradients_of_other_parts_that_are_asked_for_leave_the_loop(clipped: str) -> None:
    train = TRAIN.format(first=ZERO, last="pass").replace(
        "        optimizer.step()", f"        {clipped}\n        optimizer.step()"
    )
    assert convert(HEAD + train + DATA + TRAININGS["two parts"]).gaps


@pytest.mark.parametrize("name", TRAININGS)
def test_gradients_that_an_optimizer_leaves_are_no_later_ones(name: str) -> None:
    """`zero_grad()` behind the step clears what the optimizer has: of the rest, all backward passes add up."""
    after = LOOP.replace(f"    {ZERO}\n", "", 1) + f"    {ZERO}\n"
    source = HEAD + TRAIN.format(first="pass", last=ZERO) + DATA + TRAININGS[name].replace(LOOP, after)
    assert any(
        "another optimizer has other parameters" in g.reason or ".grad" in g.reason for g in convert(source).gaps
    )


LATER = "warm = SGD({warm}, lr=0.1)\n{first}optimizer = SGD({second}, lr=0.1)\n{loop}"
AFTER = LOOP.replace(f"    {ZERO}\n", "", 1) + f"    {ZERO}\n"


@pytest.mark.parametrize(
    ("warm", "second"),
    [
        ("model.head.parameters()", "model.parameters()"),
        ("model.head.parameters()", "model.base.parameters()"),
        ("[{'params': model.head.parameters()}, {'params': model.base.head.parameters()}]", "model.parameters()"),
    ],
)
def test_what_another_optimizer_left_is_in_the_first_step(warm: str, second: str) -> None:
    source = HEAD + DATA + LATER.format(warm=warm, second=second, first=AFTER.replace("optimizer", "warm"), loop=AFTER)
    assert {"another optimizer has other parameters" in gap.reason for gap in convert(source).gaps} == {True}
    before = source.replace(AFTER, LOOP).replace(AFTER.replace("optimizer", "warm"), LOOP.replace("optimizer", "warm"))
    assert not convert(before).gaps


@pytest.mark.jax
def test_what_another_optimizer_zeroes_is_zero() -> None:
    loops = LATER.format(warm="model.parameters()", second="model.parameters()", first="", loop=AFTER)
    trained(
        f"{HEAD}{DATA}# train\n{loops.replace('optimizer = ', AFTER.replace('optimizer', 'warm') + 'optimizer = ')}"
    )


def test_a_norm_of_more_than_the_groups_have_is_another_one() -> None:
    clip = "    loss.backward()\n    nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n"
    loop = LOOP.replace("    loss.backward()\n", clip)
    groups = "[{'params': model.head.parameters()}, {'params': model.base.head.parameters(), 'lr': 0.05}]"
    made = convert(f"{HEAD}{DATA}optimizer = SGD({groups}, lr=0.1)\n{loop}")
    assert ["The optimizer updates a part of what is clipped" in gap.reason for gap in made.gaps] == [True]
    by_value = loop.replace("clip_grad_norm_", "clip_grad_value_")
    assert not convert(f"{HEAD}{DATA}optimizer = SGD({groups}, lr=0.1)\n{by_value}").gaps
