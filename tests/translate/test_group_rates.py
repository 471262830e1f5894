"""Groups of parameters with rates of their own."""

from __future__ import annotations

import pytest

from t2j_lsp import convert
from t2j_lsp.translate import translate

from .test_frozen_groups import HEAD, LOOP
from .training_sides import trained

GROUPS = (
    "optimizer = torch.optim.SGD([{'params': model.base.parameters(), 'lr': 0.01}, "
    "{'params': model.head.parameters()}], lr=0.1, momentum=0.9)\n"
)


SCHEDULERS = [
    "StepLR(optimizer, 2, gamma=0.5)",
    "ExponentialLR(optimizer, 0.8)",
    "MultiStepLR(optimizer, [1, 3], gamma=0.3)",
    "CosineAnnealingLR(optimizer, 4, eta_min=0.001)",
    "LambdaLR(optimizer, lambda epoch: 0.9 ** epoch)",
]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_each_group_has_its_own_rate(scheduler: str) -> None:
    made = GROUPS + f"scheduler = torch.optim.lr_scheduler.{scheduler}\n"
    loop = LOOP + "    scheduler.step()\n    rates += scheduler.get_last_lr()\n"
    trained(HEAD.format(init="", made="") + made + loop, lists=("losses", "rates"))


def test_rates_that_are_set_otherwise_stay() -> None:
    more = "scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)\n"
    reasons = [gap.reason for gap in translate(HEAD.format(init="", made="") + GROUPS + more + LOOP).gaps]
    assert any("learning rates of their own" in one for one in reasons), reasons


APART = [
    "    optimizer.param_groups[0]['lr'] = 0.2\n    rates += [g['lr'] for g in optimizer.param_groups]\n",
    "    optimizer.param_groups[-1]['lr'] *= 0.5\n    rates.append(optimizer.param_groups[1]['lr'])\n",
    "    for group in optimizer.param_groups:\n        group['lr'] = max(0.02, group['lr'] * 0.5)\n"
    "    rates.append(optimizer.param_groups[0]['lr'] * len(optimizer.param_groups))\n",
    "    for group in optimizer.param_groups:\n        rates.append(group['lr'])\n        print(group['lr'])\n"
    "    for g in optimizer.param_groups:\n        g['lr'] *= 0.5\n",
    "    for group in optimizer.param_groups:\n        group['lr'] = 0.3\n"
    "    rates.append(optimizer.param_groups[1]['lr'])\n",
]


EVEN = GROUPS.replace(", 'lr': 0.01", ", 'weight_decay': 0.1")


@pytest.mark.parametrize("groups", [GROUPS, EVEN])
@pytest.mark.parametrize("more", APART)
def test_each_group_has_its_rate_set_and_read(groups: str, more: str) -> None:
    trained(HEAD.format(init="", made="") + groups + LOOP + more, lists=("losses", "rates"))


@pytest.mark.parametrize("more", ["optimizer.param_groups[2]['lr'] = 1.0\n", "print(optimizer.param_groups[0])\n"])
def test_groups_that_are_not_known_stay(more: str) -> None:
    assert any("no parameter groups" in g.reason for g in convert(HEAD.format(init="", made="") + GROUPS + more).gaps)


NUMBERED = """import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Sequential(nn.Linear(5, 4), nn.Tanh()), nn.Linear(4, 2))
x, y = torch.linspace(-1, 2, 24).reshape(8, 3), torch.linspace(0, 1, 16).reshape(8, 2) ** 2
losses, rates = [], []

# train
optimizer = torch.optim.SGD([%s], lr=0.1, weight_decay=0.2)
"""


PICKED = [
    "{'params': model[0].parameters(), 'lr': 0.5}, {'params': model[-1].parameters()}",
    "{'params': model[2][0].parameters(), 'lr': 0.5}, {'params': list(model[3].parameters()), 'weight_decay': 0}",
    "{'params': model[:2].parameters(), 'lr': 0.5}, {'params': [model[3].weight]}",
    "{'params': model[2:].parameters(), 'lr': 0.5}",
]


@pytest.mark.parametrize("picked", PICKED)
def test_children_of_a_sequential_are_groups(picked: str) -> None:
    trained(NUMBERED % picked + LOOP)


def test_children_of_a_sequential_that_gets_more_of_them_are_not_known() -> None:
    source = NUMBERED % PICKED[0] + LOOP
    reasons = [g.reason for g in convert(source.replace("x, y =", "model.append(nn.Tanh())\nx, y =")).gaps]
    assert any("Can't tell which module" in one for one in reasons), reasons


GROUPED = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.LayerNorm(4)

    def configure(self, lr):
        found = {n: p for n, p in self.named_parameters()}
        found = {n: p for n, p in found.items() if p.requires_grad}
        decayed = [p for n, p in found.items() if p.dim() >= 2]
        others = [p for n, p in found.items() if p.dim() < 2]
        groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
%s        return torch.optim.AdamW(groups, lr=lr)
"""


def test_lists_that_only_groups_are_made_of_go_with_them() -> None:
    done = convert(GROUPED % "")
    assert not done.gaps
    assert "    def configure(self, lr):\n        tx = optax.inject_hyperparams(optax.adamw" in done.code


def test_lists_that_are_read_otherwise_stay() -> None:
    code = convert(GROUPED % "        print(len(decayed))\n").code
    assert "decayed = [" in code and "found = {" in code and "others" not in code


def test_the_rate_of_an_optimizer_that_a_function_hands_out_can_be_set() -> None:
    made = "    opt = torch.optim.SGD(net.parameters(), lr=lr)\n    return opt, 1\n"
    text = f"import torch\n\n\ndef make(net, lr):\n{made}"
    assert "optax.inject_hyperparams(optax.sgd)(learning_rate=lr)" in convert(text).code
    assert "inject" not in convert(f"{text}\n\nif __name__ == '__main__':\n    make(torch.nn.Linear(3, 1), 0.1)\n").code
