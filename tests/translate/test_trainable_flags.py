"""Parameters that functions freeze, or that a later phase trains again: fine-tuning as people write it."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

from .training_sides import trained

HEAD = """\
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4))
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(torch.tanh(self.base(x)))


class Around(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.out = nn.Linear(2, 2)

    def forward(self, x):
        return self.out(self.inner(x))


def set_flags(part, on):
    for p in part.parameters():
        p.requires_grad = on


def build():
    net = Net()
    for p in net.base.parameters():
        p.requires_grad = False
    return net


def by_names(net, words):
    for name, p in net.named_parameters():
        if any(w in name for w in words):
            p.requires_grad = True
        else:
            p.requires_grad = False


x, y = torch.linspace(-1, 2, 24).reshape(8, 3), torch.linspace(0, 1, 16).reshape(8, 2) ** 2
losses = []


def fit(model, optimizer):
    for _ in range(3):
        loss = ((model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


"""
ADAMW = "optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, weight_decay=0.3)\n"
FILTERED = "optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=0.05)\n"
FIT = "fit(model, optimizer)\n"
PHASES = {
    "a function that makes it": "model = build()\n# train\n" + ADAMW + FIT,
    "a function that is given it": "model = Net()\nset_flags(model.base, False)\n# train\n" + FILTERED + FIT,
    "two phases": "model = Net()\nset_flags(model.base, False)\n# train\n"
    + FILTERED + FIT + "set_flags(model.base, True)\n" + ADAMW + FIT,
    "two phases in the open": "model = build()\n# train\n"
    + ADAMW + FIT + "for p in model.parameters():\n    p.requires_grad = True\n" + ADAMW + FIT,
    "by names": "model = Net()\nby_names(model, ['head'])\n# train\n"
    + FILTERED + FIT + "by_names(model, ['head', 'base.2'])\n" + FILTERED + FIT,
    "the last of them": "model = Net()\n# train\nfor p in list(model.parameters())[:-3]:\n"
    "    p.requires_grad_(False)\n" + ADAMW + FIT,
    "a part of another": "inner = build()\nmodel = Around(inner)\n# train\n" + ADAMW + FIT,
    "all of a part of another": "inner = Net()\ninner.requires_grad_(False)\nmodel = Around(inner)\n# train\n"
    + ADAMW + FIT,
    "in a list": "inner = Net()\nset_flags(inner, False)\nmodel = nn.Sequential(inner, nn.Linear(2, 2))\n# train\n"
    + ADAMW + FIT,
    "counted": "model = build()\n# train\n"
    "losses.append(float(sum(p.numel() for p in model.parameters() if p.requires_grad)))\n" + ADAMW + FIT,
}  # fmt: skip


@pytest.mark.parametrize("program", PHASES.values(), ids=PHASES)
def test_what_is_frozen_when_an_optimizer_is_made_stays(program: str) -> None:
    assert "wrt=is_trainable" in trained(HEAD + program).translation.code


LEFT = {
    "trained again by the same optimizer": "model = build()\n" + ADAMW + FIT + "set_flags(model.base, True)\n" + FIT,
    "frozen behind the optimizer": "model = Net()\n" + ADAMW + "set_flags(model.base, False)\n" + FIT,
    "all of it": "model = Net()\n" + ADAMW + FIT + "model.requires_grad_(False)\n" + ADAMW + FIT,
    "one parameter": "model = build()\nmodel.head.bias.requires_grad = False\n" + ADAMW + FIT,
    "asked for otherwise": "model = build()\n" + ADAMW + FIT + "print([p.requires_grad for p in model.parameters()])\n",
    "two modules": "model, other = build(), Net()\n"
    "optimizer = torch.optim.Adam([*model.parameters(), *other.parameters()], lr=0.1)\n" + FIT,
}


@pytest.mark.parametrize("program", LEFT.values(), ids=LEFT)
def test_flags_that_an_optimizer_does_not_ask_for_are_a_gap(program: str) -> None:
    assert translate(HEAD + program).gaps
