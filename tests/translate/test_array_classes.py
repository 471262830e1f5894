"""Dataclasses of arrays are registered with JAX; of other objects a step gives none, and says so."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = """\
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import nn


{output}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x, y):
        z = self.fc(x)
        return {made}


torch.manual_seed(0)
model = Net()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(3):
    x = torch.randn(8, 4)
    out = model(x, x[:, :2])
    opt.zero_grad()
    out.loss.backward()
    opt.step()
    print(i, out.loss.item(), out.logits.mean().item())
"""
MADE = "Out(logits=z, loss=((z - y) ** 2).mean())"

RECORDS = {
    "plain": "@dataclass\nclass Out:\n    logits: torch.Tensor\n    loss: torch.Tensor | None = None\n",
    "frozen": "@dataclass(frozen=True)\nclass Out:\n    logits: torch.Tensor\n    loss: torch.Tensor | None = None\n",
    "derived": "@dataclass\nclass Base:\n    logits: torch.Tensor\n\n\n"
    "@dataclass\nclass Out(Base):\n    loss: torch.Tensor | None = None\n",
    "containers": "@dataclass\nclass Out:\n    logits: torch.Tensor\n    loss: torch.Tensor | None = None\n"
    "    hidden: tuple[torch.Tensor, ...] = ()\n    parts: dict[str, torch.Tensor] = field(default_factory=dict)\n",
}

OTHERS = {
    "class": "class Out:\n    def __init__(self, logits, loss):\n        self.logits, self.loss = logits, loss\n",
    "text": "@dataclass\nclass Out:\n    logits: torch.Tensor\n    loss: torch.Tensor | None = None\n    a: str = ''\n",
    "count": "@dataclass\nclass Out:\n    logits: torch.Tensor\n    loss: torch.Tensor | None = None\n    n: int = 0\n",
    "anything": "@dataclass\nclass Out:\n    logits: object\n    loss: torch.Tensor | None = None\n",
    "changed behind": "@dataclass\nclass Out:\n    logits: torch.Tensor\n    loss: torch.Tensor | None = None\n\n"
    "    def __post_init__(self):\n        self.logits = self.logits * 2\n",
    "not given": "@dataclass\nclass Out:\n    logits: torch.Tensor\n    loss: torch.Tensor | None = None\n"
    "    other: torch.Tensor | None = field(default=None, init=False)\n",
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_a_step_gives_a_dataclass_of_arrays(record: str) -> None:
    source = HEAD.format(output=record, made=MADE)
    converted = convert(source)

    assert not converted.gaps
    assert converted.code.count("@jax.tree_util.register_dataclass\n@dataclass") == record.count("@dataclass")
    assert convert(converted.code).code == converted.code


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_step_gives_no_object_that_jax_cannot_take_apart(other: str) -> None:
    converted = convert(HEAD.format(output=other, made=MADE))

    assert ["a dataclass of arrays" in gap.reason for gap in converted.gaps] == [True]
    assert "register_dataclass" not in converted.code


def test_a_named_tuple_is_a_tree_as_it_is() -> None:
    tuple_of_two = "class Out(NamedTuple):\n    logits: torch.Tensor\n    loss: torch.Tensor\n"
    converted = convert(HEAD.format(output=tuple_of_two, made=MADE))

    assert not converted.gaps
    assert "register_dataclass" not in converted.code


STATES = """\
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class State:
    h: torch.Tensor

    def detach(self):
        return State(self.h.detach())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x, state):
        h = self.cell(x, state.h)
        return h, State(h)


model = Net()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
state = State(torch.zeros(8, 4))
for i in range(4):
    x = torch.ones(8, 4)
    y, state = model(x, state)
    loss = ((y - x) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    state = state.detach()
    print(loss.item())
"""


def test_a_step_takes_a_dataclass_of_arrays() -> None:
    converted = convert(STATES)

    assert not converted.gaps
    assert "state" in converted.code[converted.code.index("def train_step(") :].partition(":")[0]
