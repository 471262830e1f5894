"""Gradients by what an object keeps, ``torch.autograd.grad(u, self.x)``: a variable of the method holds it."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

PROGRAM = """\
import torch
import torch.nn as nn


class Fit:
    def __init__(self, net, u):
        self.x = torch.linspace(0, 1, 6).reshape(6, 1).requires_grad_()
        self.u = u
        self.net = net
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)

    def loss(self):
        \"\"\"Of values and of the equation.\"\"\"
        u = self.net(self.x)
        u_x = torch.autograd.grad(u, self.x, grad_outputs=torch.ones_like(u), create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, self.x, grad_outputs=torch.ones_like(u_x), create_graph=True)[0]
        return torch.mean((u - self.u) ** 2) + torch.mean((u_xx + u) ** 2)

    def train(self, epochs):
        for epoch in range(epochs):
            self.optimizer.zero_grad()
            loss = self.loss()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())


losses = []
model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
# train
Fit(model, torch.linspace(0, 1, 6).reshape(6, 1)).train(5)
"""


@pytest.mark.jax
def test_a_method_that_differentiates_by_an_attribute_trains_the_same() -> None:
    code = trained(PROGRAM).translation.code
    assert '"""Of values and of the equation."""\n        x = ' in code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("u = self.net(self.x)\n", "x = self.u\n        u = self.net(self.x)\n"),
        ("u, self.x, grad_outputs", "u, [self.x], grad_outputs"),
        ("            loss = self.loss()\n", "            loss = self.loss() + self.x.mean()\n"),
    ],
)
def test_the_name_is_free_and_every_read_is_the_variable(old: str, new: str) -> None:
    assert old in PROGRAM
    assert not convert(PROGRAM.replace(old, new)).gaps


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.linspace(0, 1, 6).reshape(6, 1).requires_grad_()", "nn.Parameter(torch.ones(6, 1))"),
        ("for epoch in range(epochs):\n", "for epoch in range(epochs):\n            self.x = self.x.detach() + 1\n"),
        ("u = self.net(self.x)\n", "self.x.add_(1)\n        u = self.net(self.x)\n"),
        ("u = self.net(self.x)\n", "self.x[0] = 1\n        u = self.net(self.x)\n"),
        ("u = self.net(self.x)\n", "u = self.value()\n"),
    ],
    ids=["a parameter", "given again", "written to", "a row written to", "computed elsewhere"],
)
def test_what_may_be_another_tensor_is_a_gap(old: str, new: str) -> None:
    assert old in PROGRAM
    more = "    def value(self):\n        return self.net(self.x)\n\n    def train("
    assert convert(PROGRAM.replace(old, new).replace("    def train(", more)).gaps
