"""Forward passes under ``torch.no_grad()`` in a training loop: no gradient comes through, updates keep their order."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from .side_by_side import sides

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn

x = torch.linspace(-1, 1, 24).reshape(8, 3)
y = x.sum(dim=1, keepdim=True)
model, other = nn.Linear(3, 1), nn.Linear(3, 1)
for layer in (model, other):
    nn.init.constant_(layer.weight, 0.1)
    nn.init.constant_(layer.bias, 0.2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
second = torch.optim.SGD(other.parameters(), lr=0.05)
losses = []
"""
LOOPS = {
    "a target made by the model itself": """
        for i in range(4):
            out = model(x)
            with torch.no_grad():
                target = torch.tanh(model(x + 1))
            loss = F.mse_loss(out, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    """,
    "a target made by another model": """
        for i in range(4):
            out = model(x)
            with torch.no_grad():
                target = torch.tanh(other(x + 1))
            loss = F.mse_loss(out, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    """,
    "an error that both models are updated by": """
        for i in range(4):
            with torch.no_grad():
                mask = torch.sigmoid(model(x))
            error = (other(x * mask) - y) ** 2
            first = error.mean()
            second.zero_grad()
            first.backward()
            second.step()
            reward = -(error.detach() + 0.1 * mask)
            loss = -(model(x) * reward).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(first.item() + loss.item())
    """,
}


@pytest.mark.parametrize("name", LOOPS)
def test_the_numbers_are_the_same(name: str) -> None:
    pair = sides(HEAD + textwrap.dedent(LOOPS[name]), "without_gradient")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)


def test_a_target_of_another_model_is_compiled_with_the_step() -> None:
    code = sides(HEAD + textwrap.dedent(LOOPS["a target made by another model"]), "compiled_target").translation.code
    assert "train_step(model, other, optimizer, x)" in code
