"""Functions that leave gradients in the parameters of a module, to which PyTorch adds those of the step."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """\
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(4, 3)
opt = torch.optim.SGD(model.parameters(), lr=0.1)


def fgsm(x, y, eps=0.1):
    x = x.clone().detach().requires_grad_(True)
    loss = F.cross_entropy(model(x), y)
    {backward}
    return (x + eps * {gradient}.sign()).detach()


for i in range(4):
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    {first}
    {second}
    loss = F.cross_entropy(model(x_adv), y)
    loss.backward()
    opt.step()
    {last}
"""
ATTACK, ZERO = "x_adv = fgsm(x, y)", "opt.zero_grad()"
STORED = {"backward": "loss.backward()", "gradient": "x.grad"}


@pytest.mark.parametrize(
    "order", [{"first": ZERO, "second": ATTACK, "last": "pass"}, {"first": "pass", "second": ATTACK, "last": ZERO}]
)
def test_gradients_of_an_attack_are_those_of_the_step_too(order: dict[str, str]) -> None:
    """In PyTorch the step moves by both: an update by the second loss alone trains otherwise."""
    done = convert(TEXT.format(**STORED, **order))
    assert [gap.code for gap in done.gaps] == ["training-loop"], done.gaps
    assert "fgsm leaves gradients in the parameters" in done.gaps[0].reason


ZEROED = {"first": ATTACK, "second": ZERO, "last": "pass"}
FIRST = {"first": ZERO, "second": ATTACK, "last": "pass"}


@pytest.mark.parametrize(
    ("attack", "order"),
    [
        (STORED, ZEROED),
        ({"backward": "g = torch.autograd.grad(loss, x)[0]", "gradient": "g"}, FIRST),
        ({"backward": "loss.backward()\n    g = x.grad\n    model.zero_grad()", "gradient": "g"}, FIRST),
    ],
    ids=["zeroed behind it", "of the input alone", "zeroed in it"],
)
def test_an_attack_that_leaves_none_converts(attack: dict[str, str], order: dict[str, str]) -> None:
    done = convert(TEXT.format(**attack, **order))
    assert not any("leaves gradients" in gap.reason for gap in done.gaps), done.gaps
