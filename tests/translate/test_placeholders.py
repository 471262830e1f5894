"""Variables that are None until a branch says what they are: as if they weren't there before it."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

SOURCE = """
import torch
import torch.nn as nn


def main(opt, epochs):
    model = nn.Linear(6, 3)
    optimizer = None
    if opt == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    elif opt == "adam":
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    else:
        raise NotImplementedError(opt)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    x = torch.randn(4, 6)
    for epoch in range(epochs):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        print(loss.item())


main("sgd", 3)
"""


def test_a_variable_that_every_branch_gives_a_value_is_not_there_before() -> None:
    translation = convert(SOURCE)
    assert not translation.gaps
    assert "optimizer = None" not in translation.code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    else:\n        raise NotImplementedError(opt)\n", ""),
        ("        raise NotImplementedError(opt)\n", "        print(opt)\n"),
        ('    if opt == "sgd":', '    print(optimizer)\n    if opt == "sgd":'),
        ("    optimizer = None\n", "    optimizer = None\n    show = lambda: print(optimizer)\n    show()\n"),
    ],
)
def test_one_that_may_be_none_or_is_read_stays(old: str, new: str) -> None:
    assert old in SOURCE
    translation = convert(SOURCE.replace(old, new))
    assert "optimizer = None" in translation.code
    assert translation.gaps
