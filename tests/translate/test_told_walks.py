"""Walks over parameters that tell of them one after the other have PyTorch's names, order and layouts."""

from __future__ import annotations

import contextlib
import io

import pytest

from t2j_lsp.translate import translate

MODEL = """\
import math
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.blocks = nn.ModuleList([nn.Linear(4, 5 if i == 10 else 4) for i in range(12)][:{blocks}])
        self.alpha = nn.Parameter(torch.ones(3))
        self.norm = nn.BatchNorm1d(4)
        self.act = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))

    def forward(self, x):
        return self.act(self.norm(self.stem(x).mean(dim=(2, 3)))) + self.alpha.sum()


{code}
"""
FLAT = """\
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    loss = model(torch.rand(4, 3, 5, 5)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
for name, p in model.named_parameters():
    if p.requires_grad:
        print(name, tuple(p.shape), p.numel(), bool(p.data.norm() > 0))
print([tuple(p.shape) for p in model.parameters()])
"""
FUNCTION = """\
def describe(net, depth=3):
    total = 0
    for i, (key, value) in enumerate(net.named_parameters()):
        total += value.nelement()
        print(f"{i} {key} {list(value.size())} {value.detach().abs().max().item() >= 0}")
        if i == depth:
            break
    return total


net = Net()
print(describe(net), describe(net, 100))
"""
TRAINER = """\
class Trainer:
    def __init__(self, model):
        self.model = model
        self.log = []

    def shapes(self):
        for p in self.model.parameters():
            self.log.append(list(p.shape))
        return self.log


held = list(Net().parameters())
print(len(held), tuple(held[0].size()), list(held[-1].shape), held[2].dim())
print(Trainer(Net()).shapes(), "; ".join(name for name, _ in Net().named_parameters()))
"""


APART = """\
class Word2Vec(nn.Module):
    def __init__(self):
        super().__init__()
        self.W = nn.Linear(4, 2, bias=False)
        self.WT = nn.Linear(2, 4, bias=False)
        nn.init.constant_(self.W.weight, 1.5)
        with torch.no_grad():
            self.WT.weight.copy_(torch.arange(8.0).reshape(4, 2))


model = Word2Vec()
for i, label in enumerate("abcd"):
    W, WT = model.parameters()
    x, y = W[0][i].item(), WT[i, 1].item()
    print(label, x, y, math.floor(y), tuple(W.shape), tuple(WT.size()))
"""


def printed(code: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "program", "exec"), {"__name__": "__main__"})
    return out.getvalue()


@pytest.mark.parametrize("code", [FLAT, FUNCTION, TRAINER, APART], ids=["flat", "function", "trainer", "apart"])
def test_a_told_walk_prints_what_pytorch_prints(code: str) -> None:
    source = MODEL.format(code=code, blocks=12)
    translation = translate(source)
    assert not translation.gaps, translation.gaps
    assert printed(translation.code) == printed(source)


@pytest.mark.parametrize(
    "loop",
    [
        "kept = []\nfor name, p in net.named_parameters():\n    kept.append(p.data)",
        "kept = {}\nfor name, p in net.named_parameters():\n    kept[name] = p\n    print(name)",
        "for name, p in net.named_parameters():\n    print(name)\n    p.data.zero_()",
        "for name, p in net.named_parameters():\n    print(name, p.grad)",
        "for name, p in net.named_parameters():\n    print(name)\nprint(p.shape)",
        "held = list(net.parameters())\nprint(held[0])",
        "held = list(net.parameters())\nprint(held[0].shape)\nheld[0].data.zero_()",
        "w, b = nn.Linear(2, 3).parameters()\nw.data.zero_()",
        "w, b = net.norm.parameters()\nnet.norm.reset_parameters()\nprint(w[0].item())",
        "w, b = net.norm.parameters()\n\n\ndef show():\n    print(w[0].item())",
        "w, b = net.norm.parameters()\noptimizer = torch.optim.SGD([w, b], lr=0.1)",
        "w, b = net.norm.parameters()\nnet.norm.weight.data += 1\nprint(w[0].item())",
    ],
    ids=[
        *("kept", "kept by name", "written", "gradient", "read behind", "values of a list", "a list written"),
        *("one written", "the module changes", "read later", "given to an optimizer", "the module is written"),
    ],
)
def test_a_walk_that_does_more_stays_marked(loop: str) -> None:
    translation = translate(MODEL.format(code=f"net = Net()\n{loop}", blocks=2))
    assert any("PyTorch's order" in gap.reason for gap in translation.gaps)


def test_a_part_that_comes_late_leaves_the_order_unsure() -> None:
    source = MODEL.format(code="for name, p in Net().named_parameters():\n    print(name)", blocks=2)
    late = source.replace("self.stem =", "self.last = None\n        self.stem =")
    late = late.replace("    def forward", "        self.last = nn.Linear(2, 2)\n\n    def forward")
    assert not translate(source).gaps
    assert any("PyTorch's order" in gap.reason for gap in translate(late).gaps)


MADE = ["named = dict(Net().named_parameters())\n", "named = {{n: p for n, p in Net().named_parameters()}}\n"]
IN_ORDER = ["print(list(named))\n", "for n in named:\n    print(n)\n", "print([n for n, p in named.items()])\n"]
BY_KEY = ["print(named['alpha'].shape)\n", "print(len(named))\n", "print(sorted(named))\n"]


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("read", [*IN_ORDER, *BY_KEY])
def test_a_dict_of_parameters_has_pytorchs_order_where_it_is_walked(made: str, read: str) -> None:
    gaps = translate(MODEL.format(blocks=2, code=made.format() + read)).gaps
    assert bool(gaps) == (read in IN_ORDER)
