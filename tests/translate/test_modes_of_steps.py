"""``net = net.train()`` in a training loop."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

LOOP = """\
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.ones(3, 2, 3):
    opt.zero_grad()
    {train}
    loss = net(x).square().mean()
    loss.backward()
    opt.step()
    {evaluate}
    print(net(x))
"""


@pytest.mark.parametrize("train", ["net = net.train()", "net = net.train(True)"])
def test_a_mode_that_is_assigned_is_set_by_a_statement(train: str) -> None:
    translation = convert(LOOP.format(train=train, evaluate="net = net.eval()"))
    assert not translation.gaps
    loop = translation.code[translation.code.index("\nfor x in") :].partition("\n\n\n")[0]
    assert "net = " not in loop and "    net.train()\n    train_step(" in loop and "    net.eval()\n" in loop


def test_a_second_name_that_the_loss_reads_stays_as_it_is() -> None:
    text = LOOP.format(train="other = net.train()", evaluate="net.eval()").replace("net(x).square", "other(x).square")
    translation = convert(text)
    assert translation.gaps and "other = net.train()" in translation.code
