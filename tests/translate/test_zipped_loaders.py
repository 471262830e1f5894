"""Loops that take batches from several loaders at once, or from one behind the other."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .printed import printed

HEAD = """\
import itertools
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.linspace(-1, 1, 24).reshape(8, 3)
few = DataLoader(TensorDataset(x, torch.arange(8) % 2), batch_size=4)
many = DataLoader(TensorDataset(x + 1), batch_size=2)
model = nn.Linear(3, 2)
for p in model.parameters():
    nn.init.constant_(p, 0.1)
opt = torch.optim.SGD(model.parameters(), lr=0.5)
criterion = nn.CrossEntropyLoss()

"""
LOSS = "criterion(model({a}), {b}) + {rate} * model({c}).pow(2).mean()"
LOOP = """\
for {targets} in {walked}:
    {first}loss = {loss}
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(round(loss.item(), 5))
"""
WALKED = {
    "two loaders": ("(a, b), (c,)", "zip(few, many)", "", "0.5"),
    "the shorter one again": ("(a, b), c", "zip(few, itertools.cycle(many))", "(c,) = c\n    ", "0.5"),
    "counted": ("i, ((a, b), (c,))", "enumerate(zip(few, many))", "", "(i + 1)"),
    "beside numbers": ("(a, b), rate, (c,)", "zip(few, [0.5, 0.25], many)", "", "rate"),
    "whole batches": ("one, other", "zip(few, many)", "a, b = one\n    c = other[0]\n    ", "0.5"),
}


@pytest.mark.parametrize("name", WALKED)
def test_batches_of_several_loaders_become_arrays(name: str) -> None:
    targets, walked, first, rate = WALKED[name]
    loss = LOSS.format(a="a", b="b", c="c", rate=rate)
    source = HEAD + LOOP.format(targets=targets, walked=walked, first=first, loss=loss)
    found = convert(source)
    assert not found.gaps
    assert printed(found.code) == printed(source)


def test_one_loader_behind_the_other() -> None:
    loop = LOOP.format(targets="a, b", walked="itertools.chain(few, few)", first="", loss="criterion(model(a), b)")
    found = convert(HEAD + loop)
    assert not found.gaps
    assert printed(found.code) == printed(HEAD + loop)


def test_loaders_that_a_function_is_given() -> None:
    loss = LOSS.format(a="a", b="b", c="c", rate="0.5")
    body = LOOP.format(targets="(a, b), (c,)", walked="zip(label_loader, free_loader)", first="", loss=loss)
    source = HEAD + "def train(label_loader, free_loader):\n    " + body.replace("\n", "\n    ").rstrip() + "\n\n"
    found = convert(source + "train(few, many)\n")
    assert not found.gaps
    assert printed(found.code) == printed(source + "train(few, many)\n")


def test_lists_of_numbers_that_are_walked_together_stay() -> None:
    loop = "for i, j in zip([1, 2], [3, 4]):\n    print(i + j)\n"
    assert loop in convert(HEAD + loop).code
