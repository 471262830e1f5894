"""One function that trains and evaluates, by whether it is given an optimizer, in the forms that people write."""

from __future__ import annotations

import pytest

from t2j_lsp.api import convert

from .printed import printed

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

X = torch.linspace(-1, 1, 60).reshape(12, 5)
Y = (torch.arange(12) % 3 > 0).long()
first = DataLoader(TensorDataset(X[:8], Y[:8]), batch_size=4)
last = DataLoader(TensorDataset(X[8:], Y[8:]), batch_size=4)
model = nn.Linear(5, 2)
for p in model.parameters():
    nn.init.constant_(p, 0.1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()

def run(model, loader, criterion, optimizer=None, scaler=None):
    training = optimizer is not None
    model.train(training)
    total = 0.0
BODY
    return round(total, 4)

for epoch in range(2):
    print(run(model, first, criterion, optimizer), run(model, last, criterion))
"""
ZERO = {
    "flag": "if training:\n            optimizer.zero_grad()",
    "optimizer": "if optimizer:\n            optimizer.zero_grad()",
    "chosen": "optimizer.zero_grad() if training else None",
}
FORWARD = {
    "plain": "logits = model(x)\n        loss = criterion(logits, y)",
    "switch": """with torch.set_grad_enabled(training):
            logits = model(x)
            loss = criterion(logits, y)""",
    "choice": """with (torch.enable_grad() if training else torch.no_grad()):
            logits = model(x)
            loss = criterion(logits, y)""",
}
STEP = "loss.backward()\n            optimizer.step()"
LOOP = """    for x, y in loader:
        {zero}
        {forward}
        if {flag}:
            {step}
        total += loss.item()"""


def same(body: str) -> str:
    source = HEAD.replace("BODY", body)
    result = convert(source)
    assert not result.gaps
    assert "train_step(model, optimizer, x, y, criterion)" in result.code
    assert printed(result.code) == printed(source)
    return result.code


@pytest.mark.parametrize("forward", FORWARD.values(), ids=FORWARD)
@pytest.mark.parametrize("zero", ZERO.values(), ids=ZERO)
def test_gradients_are_zeroed_in_front_of_the_forward_pass(zero: str, forward: str) -> None:
    flag = "optimizer" if "if optimizer" in zero else "training"
    same(LOOP.format(zero=zero, forward=forward, flag=flag, step=STEP))


@pytest.mark.parametrize(
    "made", ["torch.enable_grad() if training else torch.no_grad()", "torch.set_grad_enabled(training)"]
)
def test_the_loop_may_stand_under_the_switch(made: str) -> None:
    loop = LOOP.format(zero=ZERO["flag"], forward=FORWARD["plain"], flag="training", step=STEP)
    under = loop.replace("\n", "\n    ")
    same(
        f"    with {made}:\n    {under}"
        if "set_grad" in made
        else f"    switch = {made}\n    with switch:\n    {under}"
    )


SCALED = """scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()"""


def test_a_scaler_that_nobody_makes_is_none() -> None:
    step = f"""if scaler is not None:
                {SCALED}
            else:
                loss.backward()
                optimizer.step()"""
    code = same(LOOP.format(zero=ZERO["flag"], forward=FORWARD["switch"], flag="training", step=step))
    assert "def run(model, loader, criterion, optimizer=None, scaler=None):" in code and "scale(" not in code


def test_a_scaler_that_does_something_else_is_a_gap() -> None:
    step = f"if scaler is not None:\n                {SCALED}\n            else:\n                optimizer.step()"
    body = LOOP.format(zero=ZERO["flag"], forward=FORWARD["plain"], flag="training", step=step)
    assert convert(HEAD.replace("BODY", body)).gaps
