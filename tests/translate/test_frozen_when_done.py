"""A module that a function makes, trains, freezes and hands out: its optimizer is gone, and no other one has it."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp import convert

from .side_by_side import sides

SOURCE = """
import torch
from torch import nn

x = torch.linspace(-1, 1, 24).reshape(8, 3)
body = nn.Linear(3, 4)
nn.init.constant_(body.weight, 0.3)
nn.init.constant_(body.bias, 0.1)
losses = []


def trained(net, steps=3):
    judge = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    nn.init.constant_(judge[0].weight, 0.2)
    nn.init.constant_(judge[0].bias, 0.0)
    opt = torch.optim.SGD(judge.parameters(), lr=0.1)
    for _ in range(steps):
        with torch.no_grad():
            h = net(x)
        loss = (judge(h) - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    for p in judge.parameters():
        p.requires_grad_(False)
    return judge


def main():
    first = torch.optim.SGD(body.parameters(), lr=0.05)
    for epoch in range(2):
        judge = trained(body)
        for _ in range(2):
            loss = judge(body(x)).pow(2).mean()
            first.zero_grad()
            loss.backward()
            first.step()
            losses.append(loss.item())


main()
"""


def test_the_flags_go() -> None:
    pair = sides(SOURCE, "frozen_when_done")
    assert not pair.gaps()
    assert "requires_grad" not in pair.translation.code
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)


OTHER = "        first = torch.optim.SGD(judge.parameters(), lr=0.05)\n"
LOOP = "        for _ in range(2):\n            loss = judge"


def test_what_another_optimizer_has_got_stays() -> None:
    """It skips frozen parameters in PyTorch."""
    source = SOURCE.replace(LOOP, OTHER + LOOP)
    assert source != SOURCE
    translation = convert(source)
    assert translation.gaps or "is_trainable" in translation.code


PARTS = """
import torch
from torch import nn

class Judge(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return torch.tanh(self.body(x))

class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(torch.tanh(self.net(x)))

whole = Whole()
judge = {judge}
judge.requires_grad_(False)
opt = torch.optim.SGD(whole.parameters(), lr=0.1)
for _ in range(3):
    loss = whole(torch.ones(8, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("judge", ["Judge(whole.net)", "nn.Sequential(whole.net, nn.Tanh())", "Judge(body=whole.net)"])
def test_parts_of_what_is_frozen_are_not_trained_in_silence(judge: str) -> None:
    translation = convert(PARTS.format(judge=judge))
    assert translation.gaps or "is_trainable" in translation.code


@pytest.mark.parametrize("judge", ["Judge(nn.Linear(3, 4))", "copy.deepcopy(whole.net)"])
def test_a_module_of_parts_of_its_own_is_frozen_by_itself(judge: str) -> None:
    translation = convert(f"import copy{PARTS.format(judge=judge)}")
    assert not translation.gaps and "is_trainable" not in translation.code


ITSELF = """\
import torch
import torch.nn as nn


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        for p in self.parameters():
            p.requires_grad = False

    def forward(self, x):
        return self.layer(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x)


def train():
    features, net = Features(), Net()
    {updated}
    for i in range(3):
        optimizer.zero_grad()
        loss = features(net(torch.ones(2, 3))).sum()
        loss.backward()
        optimizer.step()


train()
"""


@pytest.mark.parametrize(
    ("updated", "kept"),
    [
        ("optimizer = torch.optim.SGD(net.parameters(), lr=0.1)", 0),
        ("params = net.parameters()\n    optimizer = torch.optim.SGD(params, lr=0.1)", 0),
        ("params = features.parameters()\n    optimizer = torch.optim.SGD(params, lr=0.1)", 1),
        ("net.part = features\n    params = net.parameters()\n    optimizer = torch.optim.SGD(params, lr=0.1)", 1),
        ("net = net if LOW else features\n    params = net.parameters()\n    optimizer = torch.optim.SGD(params)", 1),
    ],
)
def test_a_class_that_freezes_itself_is_not_updated_by_what_updates_another(updated: str, kept: int) -> None:
    done = convert(ITSELF.replace("{updated}", updated))
    assert bool(done.gaps) == bool(kept)


TEACHER = """
import torch
from torch import nn

x, y = torch.randn(12, 3), torch.randn(12, 2)
teacher, student = nn.Linear(3, 2), nn.Linear(3, 2)
opt = torch.optim.SGD(teacher.parameters(), lr=0.1)
for i in range(3):
    loss = (teacher(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
for p in teacher.parameters():
    p.requires_grad = False
{second}
for i in range(3):
    loss = (student(x) - teacher(x)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_the_name_of_its_optimizer_may_be_another_ones_below() -> None:
    done = convert(TEACHER.format(second="opt = torch.optim.SGD(student.parameters(), lr=0.05)"))
    assert not done.gaps and "requires_grad" not in done.code


@pytest.mark.parametrize(
    "second",
    [
        "",
        "if len(x) > 3:\n    opt = torch.optim.SGD(student.parameters(), lr=0.05)",
        "opt = torch.optim.SGD([*student.parameters(), *teacher.parameters()], lr=0.05)",
        "opt.step()\nopt = torch.optim.SGD(student.parameters(), lr=0.05)",
        "held = opt\nopt = torch.optim.SGD(student.parameters(), lr=0.05)\nopt = held",
    ],
)
def test_where_it_may_be_the_same_one_the_flags_stay(second: str) -> None:
    assert any("requires_grad" in gap.reason for gap in convert(TEACHER.format(second=second)).gaps)
