"""Modes that each step sets, of modules that compute the same in both: they go, and stay wherever they may matter."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

PROGRAM = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))

    def forward(self, x):
        return self.body(x)


x = torch.linspace(-1, 1, 24).reshape(8, 3)
y = torch.sin(x).sum(dim=1, keepdim=True)
losses = []
model = Net()
# train
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    model.train()
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        losses.append(F.mse_loss(model(x), y).item())
model.eval()
losses.append(model(x).mean().item())
"""
MODES = (".train()", ".eval()")


def kept(source: str) -> tuple[int, ...]:
    done = convert(source)
    assert not done.gaps
    return tuple(done.code.count(mode) for mode in MODES)


@pytest.mark.jax
def test_modes_that_make_no_difference_go_from_steps() -> None:
    code = trained(PROGRAM).translation.code
    assert [code.count(mode) for mode in MODES] == [0, 1]  # the last one runs once


FUNCTION = """\
def fit(model, optimizer):
    model.train()
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


for epoch in range(4):
    losses.append(fit(model, optimizer))
"""
HEAD = PROGRAM[: PROGRAM.index("for epoch")]


@pytest.mark.jax
def test_they_go_from_functions_that_make_a_step() -> None:
    code = trained(HEAD + FUNCTION).translation.code
    assert MODES[0] not in code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("nn.ReLU()", "nn.Dropout(0.5)"),
        ("nn.ReLU()", "nn.BatchNorm1d(4)"),
        ("        return self.body(x)\n", "        return self.body(x) if self.training else self.body(x) * 2\n"),
        ("losses.append(model(x)", "print(model.training)\nlosses.append(model(x)"),
        (
            "    def forward",
            "    def train(self, mode=True):\n        return super().train(mode)\n\n    def forward",
        ),
        ("model = Net()\n", "from elsewhere import make\nmodel = make(Net())\n"),
        ("nn.ReLU()", "Layer()"),
    ],
)
def test_they_stay_where_they_may_matter(old: str, new: str) -> None:
    source = PROGRAM.replace(old, new, 1)
    if "Layer" in new:
        source = source.replace("class Net", "from elsewhere import Layer\n\n\nclass Net")
    code = convert(source).code
    assert code.count(MODES[0]) >= 1 and code.count(MODES[1]) >= 2


def test_they_stay_in_front_of_loops_over_batches() -> None:
    body = FUNCTION.replace("    optimizer.zero_grad()", "    for i in range(2):\n        optimizer.zero_grad()")
    for line in ("loss = F", "loss.backward", "optimizer.step"):
        body = body.replace(f"    {line}", f"        {line}")
    assert kept(HEAD + body)[0] == 1


def test_they_stay_in_a_file_that_others_import() -> None:
    function = FUNCTION[: FUNCTION.index("\n\nfor epoch")]
    head = HEAD[: HEAD.index("x = torch")]
    source = head + function.replace("(model, optimizer)", "(model: Net, optimizer: torch.optim.SGD, x, y)")
    assert MODES[0] in convert(source).code


def test_a_block_with_nothing_else_keeps_its_mode() -> None:
    source = PROGRAM.replace("    model.train()\n", "    if epoch % 2 == 0:\n        model.train()\n", 1)
    assert kept(source)[0] == 1
