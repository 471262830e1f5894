"""Methods that set a module's state between its steps, to zeros or what was detached: ``net.reset()``."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp import convert

from .side_by_side import sides

PROGRAM = """\
import torch
import torch.nn.functional as F
from torch import nn

xs = torch.linspace(-1, 1, 24).reshape(4, 2, 3)


class Net(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.cell = nn.RNNCell(3, 4)
        self.out = nn.Linear(4, 1)
        self.layers = layers
        {init}

    {methods}

    def forward(self, x):
        {forward}
        return self.out(self.h)


net = Net()
for p in net.parameters():
    nn.init.constant_(p, 0.1)
opt = torch.optim.SGD(net.parameters(), lr=0.5)
losses = []
for epoch in range(2):
    for row in range(4):
        {call}
        loss = 0
        for x in (xs[row], xs[row] * 2):
            loss = loss + (net(x) - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
"""
CUT = "self.h = self.cell(x, self.h.detach())"
ZEROS = "self.h = torch.zeros(2, 4)"
FORWARD = "self.h = self.cell(x, self.h)"
SET = {
    "zeros": (ZEROS, "def reset(self, rows=2):\n    self.h = torch.zeros(rows, 4)", FORWARD, "net.reset(2)"),
    "as it is made": ("self.reset()", f"def reset(self):\n    {ZEROS}", FORWARD, "net.reset()"),
    "nothing": ("self.h = None", "def reset(self):\n    self.h = None", FORWARD, "net.reset()"),
    "in place": (
        ZEROS,
        "def reset(self):\n    self.h.zero_()",
        "self.h = self.cell(x, self.h.detach())",
        "net.reset()",
    ),
    "what was detached": (ZEROS, "def cut(self):\n    self.h = self.h.detach() * 0.5", FORWARD, "net.cut()"),
    "of the same shape": (ZEROS, "def reset(self):\n    self.h = torch.zeros_like(self.h)", FORWARD, "net.reset()"),
    "of another method": (
        ZEROS,
        "def first(self):\n    return torch.ones(2, 4)\n\ndef reset(self):\n    self.h = self.first()",
        FORWARD,
        "net.reset()",
    ),
    "of a parameter's type": (
        ZEROS,
        "def reset(self):\n    weight = next(self.parameters()).data\n    self.h = weight.new(2, 4).zero_()",
        FORWARD,
        "net.reset()",
    ),
    "what it is given": (ZEROS, "def begin(self, h):\n    self.h = h", FORWARD, "net.begin(torch.ones(2, 4))"),
    "a list": (
        ZEROS,
        "def reset(self):\n    self.hs = [torch.zeros(2, 4) for _ in range(self.layers)]",
        "self.hs[1] = self.hs[0] + 1\nself.hs[0] = self.h = self.cell(x, self.hs[0])",
        "net.reset()",
    ),
    "a list that is filled": (
        f"{ZEROS}\n        self.reset()",
        "def reset(self):\n    self.hs = []\n    for _ in range(self.layers):\n"
        "        self.hs.append((torch.zeros(2, 4), torch.zeros(2, 4)))",
        "self.h = self.cell(x, self.hs[0][0])\nself.hs[0] = (self.h, self.h.detach())",
        "net.reset()",
    ),
}
LEFT = {
    "a parameter": (
        "self.h = None\n        self.first = nn.Parameter(torch.zeros(2, 4))",
        "def reset(self):\n    self.h = torch.tanh(self.first)",
        FORWARD,
        "net.reset()",
    ),
    "a layer": (ZEROS, "def begin(self, x):\n    self.h = self.cell(x)", FORWARD, "net.begin(xs[row])"),
    "an argument with a gradient": (
        ZEROS,
        "def begin(self, h):\n    self.h = h",
        FORWARD,
        "net.begin(net.out.weight.expand(2, 4))",
    ),
    "a count": (
        f"{ZEROS}\n        self.calls = 0",
        "def reset(self):\n    self.h = torch.zeros(2, 4)\n    self.calls += 1",
        FORWARD,
        "net.reset()",
    ),
    "a list that grows": (
        f"{ZEROS}\n        self.seen = []",
        "def reset(self):\n    self.seen.append(self.h.detach())\n    self.h = torch.zeros(2, 4)",
        FORWARD,
        "net.reset()",
    ),
    "a name": (
        ZEROS,
        "def begin(self):\n    setattr(self, 'h', self.out.weight.expand(2, 4))",
        FORWARD,
        "net.begin()",
    ),
}


def _program(init: str, methods: str, forward: str, call: str) -> str:
    methods, forward = methods.replace("\n", "\n    "), forward.replace("\n", "\n        ")
    return PROGRAM.format(init=init, methods=methods, forward=forward, call=call)


@pytest.mark.parametrize("name", SET)
def test_a_state_is_set_in_front_of_the_step(name: str) -> None:
    pair = sides(_program(*SET[name]), f"states_{name.replace(' ', '_')}")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)
    assert len(set(pair.torch.losses)) == 8


@pytest.mark.parametrize("name", LEFT)
def test_what_gradients_may_flow_through_is_not_set_in_front_of_it(name: str) -> None:
    left = convert(_program(*LEFT[name])).findings
    assert any(one.code == "training-loop" and one.severity == "gap" for one in left)
