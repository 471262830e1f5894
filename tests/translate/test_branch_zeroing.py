"""Gradients that are zeroed in front of the branch that updates: a GAN whose generator is updated now and then."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

LOOP = """\
import torch
from torch import nn

d, g = nn.Linear(2, 1), nn.Linear(3, 2)
opt_d, opt_g = torch.optim.Adam(d.parameters()), torch.optim.Adam(g.parameters())
sched = torch.optim.lr_scheduler.StepLR(opt_g, 1)
for i in range(6):
    z = torch.randn(4, 3)
    opt_d.zero_grad()
    loss_d = d(g(z)).mean()
    loss_d.backward()
    opt_d.step()
    {between}
    # Now and then.
    if i % 2 == 0:
        {first}
        loss_g = -d(g(z)).mean()
        loss_g.backward()
        opt_g.step()
    {behind}
"""


def converted(between: str = "opt_g.zero_grad()", first: str = "pass", behind: str = "pass") -> tuple[str, list[str]]:
    done = convert(LOOP.format(between=between, first=first, behind=behind))
    return done.code, [gap.name for gap in done.gaps]


def test_the_branch_is_read_as_if_it_zeroed_them() -> None:
    code, gaps = converted()
    assert not gaps
    assert "zero_grad" not in code and "\n    # Now and then.\n    if i % 2 == 0:\n" in code
    assert converted("pass", "opt_g.zero_grad()")[0].count("\n@") == code.count("\n@") == 0


@pytest.mark.parametrize(
    ("between", "first", "behind"),
    [
        ("pass", "pass", "pass"),
        ("opt_g.zero_grad()", "pass", "opt_g.step()"),
        ("opt_g.zero_grad(); g(z).sum().backward()", "pass", "pass"),
        ("opt_g.zero_grad()", "pass", "print(opt_g.param_groups[0]['params'][0].grad); train(opt_g)"),
    ],
    ids=["nobody zeroes", "another step", "another gradient", "handed on"],
)
def test_gradients_that_come_from_elsewhere_are_a_gap(between: str, first: str, behind: str) -> None:
    assert converted(between, first, behind)[1]


UNDER_A_FLAG = """\
import torch
from torch import nn

net, x, y = nn.Linear(3, 2), torch.randn(8, 3), torch.randint(0, 2, (8,))
opt, crit = torch.optim.SGD(net.parameters(), 0.1), nn.CrossEntropyLoss()

def run(train=True):
    if train:
        {first}
    out = net(x)
    {between}
    loss = crit(out, y)
    if train:
        loss.backward()
        opt.step()
    return loss.item()

print(run(), run(False))
"""


@pytest.mark.parametrize("first", ["opt.zero_grad()", "net.train()\n        opt.zero_grad()"], ids=["alone", "beside"])
def test_gradients_are_zeroed_under_the_same_flag(first: str) -> None:
    done = convert(UNDER_A_FLAG.format(first=first, between="pass"))
    assert not done.gaps and "opt.update(net, grads)" in done.code and "zero_grad" not in done.code


@pytest.mark.parametrize("between", ["train = not train", "out.sum().backward(retain_graph=True)"])
def test_a_flag_that_changes_or_another_gradient_between_is_a_gap(between: str) -> None:
    assert convert(UNDER_A_FLAG.format(first="opt.zero_grad()", between=between)).gaps
