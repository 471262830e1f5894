"""What a module computes anew at each call and only that call reads, and losses that are an array of one."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .printed import printed

TAGGER = """\
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 2)
        self.hidden = self.start()

    def start(self):
        return torch.zeros(1, 1, 2), torch.zeros(1, 1, 2)

    def features(self, x):
        self.hidden = self.start()
        out, self.hidden = self.lstm(x, self.hidden)
        {more}
        return out

    def loss(self, x):
        return self.features(x).pow(2).mean()


torch.manual_seed(0)
net = Tagger()
for p in net.parameters():
    nn.init.constant_(p, 0.1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    loss = net.loss(torch.ones(4, 1, 3))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{{loss.item():.5f}}")
{behind}
"""


def test_what_only_one_call_reads_is_a_variable() -> None:
    source = TAGGER.format(more="", behind="")
    result = convert(source)
    assert not result.gaps
    assert "        hidden = self.start()\n        out, hidden = self.lstm(x, hidden)\n" in result.code
    assert "nnx.jit" in result.code and printed(result.code) == printed(source)


@pytest.mark.parametrize(
    ("more", "behind"),
    [
        ("", "print(net.hidden[0].sum().item())"),
        ("", "print(getattr(net, 'hidden')[0].sum().item())"),
        ("self.last = lambda: self.hidden", ""),
    ],
)
def test_what_others_may_read_stays_an_attribute(more: str, behind: str) -> None:
    assert "out, self.hidden = self.lstm(x, self.hidden)" in convert(TAGGER.format(more=more, behind=behind)).code


SCORES = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def score(self, feats, tags):
        score = {start}
        for i, feat in enumerate(feats):
            score = score + feat[tags[i]]
        return score

    def loss(self, x, tags):
        return -self.score(self.fc(x), tags)


net = Net()
nn.init.constant_(net.fc.weight, 0.1)
nn.init.constant_(net.fc.bias, 0.2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    loss = net.loss(torch.ones(4, 3), torch.tensor([0, 1, 1, 0]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{{loss.item():.5f}}", tuple(loss.shape))
"""


@pytest.mark.parametrize("start", ["torch.zeros(1)", "torch.tensor([0.0])", "torch.zeros(())", "0"])
def test_a_loss_may_be_an_array_of_one(start: str) -> None:
    """Nothing says how many axes ``score + feat[tags[i]]`` has: JAX differentiates numbers only."""
    source = SCORES.format(start=start)
    result = convert(source)
    assert not result.gaps
    assert ("return loss.squeeze(), loss" in result.code) == ("1)" in start or "[" in start)
    assert printed(result.code) == printed(source)


HEAD_OF_STEP = """\
import torch
from torch import nn

net, crit = nn.Linear(3, 1), nn.MSELoss()
nn.init.constant_(net.weight, 0.1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    x = torch.ones(2, 3)
    loss = crit({out}, {target})
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("out", "target"),
    [("net(x).squeeze(1)", "torch.ones(2)"), ("net(x)[:1, 0]", "torch.tensor([i], dtype=torch.long).float()")],
)
def test_parts_of_tensors_and_integers_are_no_such_array(out: str, target: str) -> None:
    code = convert(HEAD_OF_STEP.format(out=out, target=target)).code
    assert "def train_step(net, optimizer" in code and "nnx.jit" in code and "loss.squeeze()" not in code


def test_new_tensors_of_a_tensor_may_be_one() -> None:
    source = SCORES.format(start="feats.new_zeros(1)")
    result = convert(source)
    assert "return loss.squeeze(), loss" in result.code and printed(result.code) == printed(source)
