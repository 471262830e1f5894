"""Optimizers that haven't got what the module has, and iterators that were used up: said, and nothing else is."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = """\
import copy
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.fc = nn.Linear(8, 3)

    def reset(self, n):
        self.fc = nn.Linear(8, n)

    def forward(self, x):
        return self.fc(torch.relu(self.body(x)))


def add_head(net, n):
    net.fc = nn.Linear(8, n)


def make_optimizer(net):
    return torch.optim.SGD(net.parameters(), lr=0.1)


x, y = torch.ones(6, 4), torch.ones(6, 3)
model = Net()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
"""
LOOP = """\
for _ in range(3):
    opt.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    opt.step()
print(loss.item())
"""
CLIPPED = LOOP.replace("    opt.step()", "    nn.utils.clip_grad_norm_(params, 0.1)\n    opt.step()")
AGAIN = "opt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
TRAINER = """\
class Trainer:
    def __init__(self):
        self.model = Net()
        {early}
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
        {late}

    def change(self):
        self.model.fc = nn.Linear(8, 3)

    def fit(self, x, y):
        for _ in range(3):
            self.opt.zero_grad()
            loss = ((self.model(x) - y) ** 2).mean()
            loss.backward()
            self.opt.step()


trainer = Trainer()
trainer.fit(x, y)
"""
REPLACED = {
    "an attribute": "model.fc = nn.Linear(8, 3)\n" + LOOP,
    "a parameter": "model.fc.weight = nn.Parameter(torch.ones(3, 8))\n" + LOOP,
    "one around another": "model.fc = nn.Sequential(model.fc, nn.Linear(3, 3))\n" + LOOP,
    "by setattr": 'setattr(model, "fc", nn.Linear(8, 3))\n' + LOOP,
    "by a method": "model.reset(3)\n" + LOOP,
    "by a function": "add_head(model, 3)\n" + LOOP,
    "the model itself": "model = Net()\n" + LOOP,
    "a copy of the model": "model = copy.deepcopy(model)\n" + LOOP,
    "between two loops": LOOP + "model.fc = nn.Linear(8, 3)\n" + LOOP,
    "of an optimizer that a function makes": "opt = make_optimizer(model)\nmodel.fc = nn.Linear(8, 3)\n" + LOOP,
    "in a trainer": TRAINER.format(early="pass", late="self.model.fc = nn.Linear(8, 3)"),
    "by a trainer's method": TRAINER.format(early="pass", late="self.change()"),
}
USED_UP = {
    "clipped": "params = model.parameters()\nopt = torch.optim.SGD(params, lr=0.1)\n" + CLIPPED,
    "clipped in a loop": "params = model.parameters()\n" + CLIPPED,
    "filtered": "params = filter(lambda p: p.requires_grad, model.parameters())\n"
    "opt = torch.optim.SGD(params, lr=0.1)\n" + CLIPPED,
}
FINE = {
    "replaced before": "model.fc = nn.Linear(8, 3)\n" + AGAIN + LOOP,
    "reset before": "model.reset(3)\n" + AGAIN + LOOP,
    "an optimizer of its own": LOOP + "model.fc = nn.Linear(8, 3)\n" + AGAIN + LOOP,
    "the model moved": 'model = model.to("cpu")\n' + LOOP,
    "the model wrapped": "model = nn.DataParallel(model)\n" + LOOP,
    "the model moved and wrapped": 'if len(x) > 3:\n    model = nn.DataParallel(model.to("cpu"))\n' + LOOP,
    "another model": "other = Net()\nother.fc = nn.Linear(8, 3)\nadd_head(other, 3)\n" + LOOP,
    "another model behind": LOOP + "model = Net()\nprint(model(x).sum().item())\n",
    "in a trainer before": TRAINER.format(early="self.change()", late="pass"),
    "read once": "params = model.parameters()\nopt = torch.optim.SGD(params, lr=0.1)\n" + LOOP,
    "a list": "params = list(model.parameters())\nopt = torch.optim.SGD(params, lr=0.1)\n" + CLIPPED,
    "either of two": "params = model.parameters()\nif len(x) > 3:\n    opt = torch.optim.SGD(params, lr=0.1)\n"
    "else:\n    opt = torch.optim.SGD(params, lr=0.2)\n" + LOOP,
}


def reasons(body: str) -> list[str]:
    return [gap.message for gap in convert(HEAD + body).gaps]


@pytest.mark.parametrize("name", REPLACED)
def test_a_part_that_an_optimizer_has_not_got_is_said(name: str) -> None:
    assert any("is replaced after" in reason for reason in reasons(REPLACED[name]))


@pytest.mark.parametrize("name", USED_UP)
def test_an_iterator_that_is_read_again_is_said(name: str) -> None:
    assert any("uses up" in reason for reason in reasons(USED_UP[name]))


@pytest.mark.parametrize("name", FINE)
def test_what_is_the_same_in_pytorch_converts(name: str) -> None:
    assert not reasons(FINE[name])


def test_an_iterator_that_is_made_anew_is_not_used_up() -> None:
    clipped = CLIPPED.replace("    nn.utils", "    params = model.parameters()\n    nn.utils")
    gaps = reasons("params = model.parameters()\nopt = torch.optim.SGD(params, lr=0.1)\n" + clipped)
    assert not any("uses up" in reason for reason in gaps)


FOLDS = """
def fit(net, opt):
    loss = net(x).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    {given}


for fold in range(2):
    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    model = fit(model, opt)
"""


@pytest.mark.parametrize(
    ("given", "converts"),
    [("return net", True), ("return Net()", False), ("net = Net()\n    return net", False)],
)
def test_a_function_that_returns_the_module_it_is_given_replaces_none(given: str, converts: bool) -> None:
    converted = convert(HEAD.rpartition("model = Net()")[0] + FOLDS.format(given=given))

    assert ["is replaced after" in gap.reason for gap in converted.gaps] == [True] * (not converts)
