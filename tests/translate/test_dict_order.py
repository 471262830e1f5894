"""Dicts that train steps give, and batches that are dicts, keep their order where the program reads it."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .side_by_side import sides

STEP = """\
import torch
from torch import nn


def criterion(out, x):
    return {{"rec": (out - x).pow(2).mean(), "cls": out.abs().mean()}}


net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(8, 4)
seen = []
for i in range(2):
    losses = {made}
    total = losses["rec"] + losses["cls"]
    opt.zero_grad()
    total.backward()
    opt.step()
    {read}
"""
LITERAL = '{"rec": (net(x) - x).pow(2).mean(), "cls": net(x).abs().mean()}'
BATCHES = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return {"x": torch.full((3,), float(i)), "b": torch.ones(3)}


net = nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
seen = []
for batch in DataLoader(Rows(), batch_size=2):
    opt.zero_grad()
    loss = (net(batch["x"]) - batch["b"]).pow(2).mean()
    loss.backward()
    opt.step()
    seen.append([k for k in batch])
"""


@pytest.mark.parametrize("made", [LITERAL, "criterion(net(x), x)", "dict(rec=net(x).mean(), cls=net(x).std())"])
@pytest.mark.parametrize("read", ["seen += [k for k, v in losses.items()]", "seen += list(losses)"])
def test_the_dict_of_a_step_has_the_order_of_the_program(made: str, read: str) -> None:
    pair = sides(STEP.format(made=made, read=read), "dict_of_a_step")
    assert not pair.gaps()
    assert pair.jax.seen == pair.torch.seen == ["rec", "cls"] * 2


def test_the_dict_of_a_forward_pass_has_the_order_of_the_program() -> None:
    source = STEP.format(made="net(x)", read="seen += losses.keys()").replace(
        "net = nn.Linear(4, 4)",
        "class Net(nn.Linear):\n    def forward(self, x):\n        return criterion(super().forward(x), x)\n\n\n"
        "net = Net(4, 4)",
    )
    pair = sides(source, "dict_of_a_forward_pass")
    assert not pair.gaps()
    assert pair.jax.seen == pair.torch.seen == ["rec", "cls"] * 2


@pytest.mark.parametrize(
    ("made", "read"),
    [
        (LITERAL, 'seen.append(losses["rec"].item())'),
        ('{"cls": net(x).abs().mean(), "rec": net(x).mean()}', "seen += list(losses)"),
    ],
)
def test_what_has_no_order_to_lose_stays_a_dict(made: str, read: str) -> None:
    done = convert(STEP.format(made=made, read=read))
    assert not done.gaps and "OrderedDict" not in done.code


def test_a_dict_in_a_dict_is_told() -> None:
    text = STEP.format(made='{"train": criterion(net(x), x)}', read="print(losses.items())")
    done = convert(text.replace('losses["', 'losses["train"]["'))
    assert any("dict in another container" in gap.reason for gap in done.gaps), [gap.reason for gap in done.gaps]


def test_a_batch_has_the_order_of_its_data_set() -> None:
    pair = sides(BATCHES, "dict_of_a_batch")
    assert not pair.gaps()
    assert pair.jax.seen == pair.torch.seen == [["x", "b"]] * 2
    plain = convert(BATCHES.replace("[k for k in batch]", 'len(batch["x"])'))
    assert not plain.gaps and "OrderedDict" not in plain.code
