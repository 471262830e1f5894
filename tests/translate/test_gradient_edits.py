"""Gradients that a loop over the parameters changes in front of the step: each is computed of itself."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

SOURCE = """\
import torch
from torch import nn

decay = 0.01
model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
x = torch.sin(torch.arange(8.0)).reshape(4, 2)
losses = []
# train
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(4):
    loss = (model(x) - 3).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    for p in model.parameters():
        {changed}
    optimizer.step()
    losses.append(loss.item())
"""
ADDED = SOURCE.replace("    loss = (model(x) - 3).pow(2).mean()\n    optimizer", "    optimizer").replace(
    "    loss.backward()\n",
    "    for row in x:\n        loss = (model(row) - 3).pow(2).mean()\n        loss.backward()\n",
)


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ("p.grad *= 0.5", "jax.tree.map(lambda g: g * 0.5, grads)"),
        ("p.grad.data.mul_(1.0 / len_)", "jax.tree.map(lambda g: g * (1.0 / len_), grads)"),
        ("p.grad = p.grad / 4", "jax.tree.map(lambda g: g / 4, grads)"),
        ("p.grad.data.div_(4)", "jax.tree.map(lambda g: g / 4, grads)"),
        (
            "p.grad.add_(p.data, alpha=decay)",
            "jax.tree.map(lambda g, p: g + decay * p, grads, nnx.state(model, nnx.Param))",
        ),
        (
            "p.grad.data += decay * p.detach()\n        p.grad.data.clamp_(-0.2, max=0.1)",
            "jax.tree.map(lambda g, p: jnp.clip(g + decay * p, -0.2, 0.1), grads, nnx.state(model, nnx.Param),)",
        ),
        (
            "if p.grad is not None:\n            p.grad = p.grad - decay * (p.grad + p)",
            "jax.tree.map(lambda g, p: g - decay * (g + p), grads, nnx.state(model, nnx.Param))",
        ),
    ],
)
def test_one_map_over_the_gradients_does_the_same(changed: str, line: str) -> None:
    source = SOURCE.format(changed=changed).replace("losses = []", "losses, len_ = [], 3")
    code = " ".join(trained(source).translation.code.split())
    assert f"grads = {line}" in code.replace("( ", "(").replace(" )", ")")


def test_gradients_that_add_up_are_changed_where_they_are() -> None:
    code = trained(ADDED.format(changed="p.grad.data.mul_(1.0 / 4)")).translation.code
    assert "\n    grads = jax.tree.map(lambda g: g * (1.0 / 4), grads)\n" in code


def test_names_of_parameters_may_be_there_if_nothing_asks_for_them() -> None:
    loop = SOURCE.replace("p in model.parameters()", "name, p in model.named_parameters()")
    assert "lambda g: g * 0.5" in trained(loop.format(changed="p.grad *= 0.5")).translation.code
    assert convert(loop.format(changed="p.grad *= scales[name]")).gaps


def test_what_the_loss_is_computed_with_changes_them_behind_it() -> None:
    code = trained(SOURCE.format(changed="p.grad *= loss")).translation.code
    assert "\n    grads = jax.tree.map(lambda g: g * loss, grads)\n    apply_gradients(" in code


def test_a_name_of_the_program_keeps_its_meaning() -> None:
    source = SOURCE.format(changed="p.grad.mul_(g)").replace("decay = 0.01", "g = 0.25")
    assert "lambda grad: grad * g" in trained(source).translation.code


@pytest.mark.parametrize(
    "changed",
    [
        "p.grad.data.clamp_(max=1)",
        "p.grad *= p.norm()",
        "p.grad = p.grad @ p.grad",
        "p.grad.mul_(0.5)\n        print(p.shape)",
        "p.data *= 0.5\n        p.grad *= 0.5",
        "p.grad.add_(torch.randn_like(p))",
    ],
)
def test_what_needs_more_than_its_own_elements_is_a_gap(changed: str) -> None:
    assert convert(SOURCE.format(changed=changed)).gaps
