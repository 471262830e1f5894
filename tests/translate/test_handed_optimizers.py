"""Objects of the file's own classes that step an optimizer, handed to a function that knows them by their use alone."""

import pytest

from t2j_lsp.translate import translate

TEXT = """\
import torch
import torch.nn as nn


class Warmup:
    def __init__(self, optimizer, warmup):
        self.optimizer = optimizer
        self.warmup = warmup
        self.count = 0

    def step(self):
        self.count += 1
        for group in self.optimizer.param_groups:
            group["lr"] = 0.1 * min(1.0, self.count / self.warmup)
        self.optimizer.step()

    def zero_grad(self):
        self.optimizer.zero_grad()


def train(model, opt, x):
    for i in range(3):
        loss = model(x).pow(2).mean()
        {zero}
        loss.backward()
        opt.step()
        print(loss.item())


torch.manual_seed(0)
model = nn.Linear(3, 1)
opt = Warmup(torch.optim.Adam(model.parameters(), lr=0.0), 10)
train(model, opt, torch.randn(4, 3))
"""


@pytest.mark.parametrize("zero", ["opt.zero_grad()", "opt.optimizer.zero_grad()"])
def test_the_step_is_the_one_of_its_class(zero: str) -> None:
    done = translate(TEXT.format(zero=zero))
    assert not done.gaps and "opt.step()" not in done.code and "opt.count += 1" in done.code


def test_what_is_handed_two_kinds_is_not_taken_for_one() -> None:
    text = TEXT.format(zero="opt.zero_grad()")
    text += "train(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(4, 3))\n"
    assert translate(text).gaps
