"""Losses that are differentiated one after the other and have one name: each counts as it was when it was."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = """\
import torch
from torch import nn

a, b = nn.Linear(3, 1), nn.Linear(3, 1)
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
w = 1.0
for i in range(3):
    x = torch.ones(4, 3)
    opt.zero_grad()
"""

LOSSES = {
    "again": (
        "    loss = a(x).mean()\n    loss.backward()\n    loss = b(x).mean()\n    loss.backward()\n"
        "    opt.step()\n    print(loss.item())\n",
        "return first_loss + loss, loss",
    ),
    "kept between": (
        "    loss = a(x).mean()\n    loss.backward()\n    first = loss\n    loss = b(x).mean()\n    loss.backward()\n"
        "    opt.step()\n    print(first.item(), loss.item())\n",
        "return raw_loss + loss, (loss, raw_loss)",
    ),
    "added to": (
        "    loss = a(x).mean()\n    loss.backward(retain_graph=True)\n    loss += b(x).mean()\n    loss.backward()\n"
        "    opt.step()\n    print(loss.item())\n",
        "return first_loss + loss, loss",
    ),
    "of what is computed again": (
        "    out = a(x)\n    out.mean().backward()\n    out = b(x)\n    out.sum().backward()\n"
        "    opt.step()\n    print(out.sum().item())\n",
        "return first_loss + out.sum(), out",
    ),
}


@pytest.mark.parametrize(("body", "wanted"), LOSSES.values(), ids=LOSSES)
def test_a_loss_is_what_it_was_when_it_was_differentiated(body: str, wanted: str) -> None:
    converted = convert(HEAD + body)

    assert not converted.gaps
    assert wanted in converted.code


def test_what_a_loss_reads_is_not_changed_in_front_of_the_step() -> None:
    losses = "    (a(x).mean() * w).backward()\n    w = w * 0.5\n    (b(x).mean() * w).backward()\n"
    converted = convert(f"{HEAD}{losses}    opt.step()\n")

    assert ["another order" in gap.reason for gap in converted.gaps] == [True]
