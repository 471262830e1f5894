"""Functions that are a part of a training step stand where they are called; what isn't sure of them stays as it is."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from t2j_lsp import convert
from t2j_lsp.contract import Severity

from .side_by_side import sides

HEAD = """\
import torch
from torch import nn

torch.manual_seed(0)
x = torch.linspace(-1, 1, 24).reshape(12, 2)
y = (x @ torch.tensor([1.0, -2.0]) + 0.5).unsqueeze(1)
model = nn.Linear(2, 1)
with torch.no_grad():
    model.weight.fill_(0.1)
    model.bias.fill_(0.2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
criterion = nn.MSELoss()
losses = []


"""
PARTS = {
    "the gradient": """
def run_backward(loss): loss.backward()


for i in range(4):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    run_backward(loss)
    optimizer.step()
    losses.append(loss.item())
""",
    "the update, clipped where that is asked for": """
def update(optimizer, loss, clip=None, *, scale=1.0):
    \"\"\"One update.\"\"\"
    optimizer.zero_grad()
    loss.backward()
    if clip is not None:
        # not too far
        nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()


for i in range(4):
    loss = criterion(model(x), y)
    update(optimizer, loss, clip=0.5)
    losses.append(loss.item())
""",
    "a loss that has no name": """
def update(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


for i in range(4): losses.append(update(criterion(model(x), y)))
""",
    "a loss that is scaled": """
def backward(loss, rounds):
    loss = loss / rounds
    loss.backward()
    return loss.item()


for i in range(4):
    loss = criterion(model(x), y)
    scaled = backward(loss, 2)
    losses += [loss.item(), scaled]
    if (i + 1) % 2 == 0:
        optimizer.step(); optimizer.zero_grad()
""",
    "the loss of what the model gave": """
def optimize(optimizer, criterion, prediction, target):
    loss = criterion(prediction, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def fit(x, y):
    for i in range(4):
        out = model(x)
        loss = optimize(optimizer, criterion, out, y)
        losses.append(loss.item())


fit(x, y)
""",
    "one in another": """
def backward(loss):
    loss.backward()


def update(optimizer, loss):
    optimizer.zero_grad()
    backward(loss)
    optimizer.step()


for i in range(4):
    loss = criterion(model(x), y)
    update(optimizer, loss)
    losses.append(loss.item())
""",
    "a method": """
class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer

    def optimize(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def fit(self, x, y):
        for i in range(4):
            loss = criterion(self.model(x), y)
            self.optimize(loss)
            losses.append(loss.item())


Trainer(model, optimizer).fit(x, y)
""",
    "the loss and its gradient": """
def forward_backward(x, y):
    loss = criterion(model(x), y)
    loss.backward()
    return loss


for i in range(4):
    optimizer.zero_grad()
    losses.append(forward_backward(x, y).item())
    optimizer.step()
""",
    "lines that are shared": """
for i in range(4): model.zero_grad(); l = criterion(model(x), y); l.backward(); optimizer.step(); losses += [l.data]
""",
    "zeroing": """
def reset(one): one.zero_grad()


for i in range(4):
    reset(optimizer)
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
""",
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_a_step_stands_where_it_is_called(name: str) -> None:
    pair = sides(HEAD + PARTS[name], "part_of_a_step")
    assert not pair.gaps()
    assert "value_and_grad(" in pair.translation.code
    assert convert(pair.translation.code).code == pair.translation.code
    assert len(pair.torch.losses) == len(pair.jax.losses) >= 4
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)


def test_a_setting_that_is_not_given_leaves_nothing() -> None:
    code = convert(HEAD + PARTS["the update, clipped where that is asked for"].replace(", clip=0.5", "")).code
    assert "clip_grad_norm" not in code
    assert "is not None" not in code
    assert "# One update." in code


KEPT = {
    "is a value": "for update in [update]:\n    pass\n",
    "is called with what it does not name": "more = {'loss': 1}\nupdate(optimizer, **more)\n",
    "is called in a condition": "while update(optimizer, criterion(model(x), y)):\n    pass\n",
    "is called behind another call": "pair = criterion(model(x), y), update(optimizer, criterion(model(x), y))\n",
    "is named in a string": "__all__ = ['update']\n",
}


@pytest.mark.parametrize("name", KEPT)
def test_a_part_with_another_use_stays(name: str) -> None:
    source = HEAD + PARTS["one in another"] + KEPT[name]
    result = convert(source)
    assert any(gap.name == "training loop" for gap in result.gaps)
    assert "def update(optimizer, loss):" in result.code


def test_a_name_that_means_something_else_where_it_is_called_keeps_a_function() -> None:
    source = (
        HEAD
        + """
def update(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def fit(x, y):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(4):
        loss = criterion(model(x), y)
        update(loss)
    return optimizer


fit(x, y)
"""
    )
    result = convert(source)
    assert result.gaps
    assert "def update(loss):" in result.code


def test_a_function_that_other_files_may_call_is_told_of() -> None:
    source = """
import torch


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def fit(model, x, y, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        loss = torch.nn.functional.mse_loss(model(x), y)
        update(optimizer, loss)
"""
    result = convert(source)
    assert not result.gaps
    (note,) = (f for f in result.findings if f.name == "update")
    assert note.severity is Severity.NOTE
    assert (note.span.line, note.span.end_line) == (5, 8)


def test_places_are_those_of_the_source() -> None:
    """What became of a line is told of the line that the user sees, though the text in between has others."""
    source = HEAD + PARTS["the update, clipped where that is asked for"] + "\n\nz = torch.svd(x)\n"
    result = convert(source)
    lines = source.splitlines()
    for one in (*result.findings, *result.outcomes):
        span = one.span
        assert 1 <= span.line <= span.end_line <= len(lines)
        assert span.column <= len(lines[span.line - 1])
    written = result.code.splitlines()
    places = {lines[e.source_line - 1].strip(): written[e.line - 1].strip() for e in result.source_map}
    assert places["optimizer = torch.optim.Adam(model.parameters(), lr=0.05)"].startswith("optimizer = nnx.Optimizer(")
    assert places["losses = []"] == "losses = []"
    assert places["losses.append(loss.item())"] == "losses.append(loss.item())"
    text, at = "", 0
    for edit in result.edits:
        text, at = f"{text}{source[at : edit.start]}{edit.new}", edit.end
    text += source[at:]
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(result.code))


def test_statements_keep_their_lines_where_that_costs_nothing() -> None:
    source = HEAD + "a = torch.zeros(2); b = torch.ones(2)\n"
    assert "a = jnp.zeros(2); b = jnp.ones(2)" in convert(source).code
