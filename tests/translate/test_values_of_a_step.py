"""What a compiled step is handed as an array, and what jit would do once that PyTorch does each time."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """\
import random

import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Variable


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.cell = nn.GRUCell(4, 4)
        self.out = nn.Linear(4, 9)

    def start(self):
        return Variable(torch.zeros(1, 4))

    def noise(self):
        return {drawn}

    def forward(self, token, hidden):
        hidden = self.cell(self.embed(token.view(1)), hidden)
        return self.out(hidden * self.noise()), hidden


net = Net()
optimizer = torch.optim.Adam(net.parameters())
criterion = nn.CrossEntropyLoss()


def pair():
    tokens = torch.randint(0, 9, (6,))
    return tokens[:-1], tokens[1:]


def train(tokens, targets):
    hidden = net.start()
    optimizer.zero_grad()
    loss = 0
    for i in range(len(tokens)):
        scores, hidden = net(tokens[i], hidden)
        loss += criterion(scores, targets[i].view(1))
    loss.backward()
    optimizer.step()
    return loss.item() / len(tokens)


print(train(*pair()))
"""


def test_what_is_only_asked_for_its_length_is_an_array() -> None:
    done = convert(TEXT.format(drawn="1.0"))
    assert not done.gaps
    assert "static_argnames" not in done.code
    assert "def train_step(net, optimizer, tokens, targets)" in done.code


@pytest.mark.parametrize("drawn", ["random.random()", "np.random.beta(1, 1)", "random.choice([1.0, 2.0])"])
def test_a_forward_pass_that_draws_outside_of_jax_is_not_compiled(drawn: str) -> None:
    """Under jit the number would be the same in every step."""
    done = convert(TEXT.format(drawn=drawn))
    assert any("is drawn once under jit" in gap.reason for gap in done.gaps)
    assert "train_step" not in done.code
    line = next(number for number, text in enumerate(done.source.splitlines(), 1) if f"return {drawn}" in text)
    assert [f.code for f in done.findings if f.span.line == line] == ["value-needed"]


def test_a_seed_is_no_draw() -> None:
    done = convert(TEXT.format(drawn="1.0").replace("net = Net()", "random.seed(0)\nnp.random.seed(0)\nnet = Net()"))
    assert not done.gaps and all(finding.code != "value-needed" for finding in done.findings)
