"""The norm of all gradients, added up to be printed between the backward pass and the step."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp import convert

from .side_by_side import sides

LOOP = """\
import torch
from torch import nn

model = nn.Linear(3, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(4):
    opt.zero_grad()
    loss = model(torch.rand(8, 3)).pow(2).mean()
    {before}
    loss.backward()
    {start}
    for p in {parameters}:
        {square}
    total = {root}
    opt.step()
    print(total)
"""
PARTS = {
    "before": "pass",
    "start": "total = 0.0",
    "parameters": "model.parameters()",
    "square": "n = p.grad.data.norm(2)\n        total += n.item() ** 2",
    "root": "total ** 0.5",
}


def converted(**parts: str) -> tuple[str, int]:
    done = convert(LOOP.format(**PARTS | parts))
    return done.code, len(done.gaps)


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"square": "total += p.grad.detach().norm().item() ** 2", "root": "total ** (1. / 2)"},
        {"square": "if p.grad is not None:\n            total += p.grad.norm(2).item() ** 2"},
        {"before": "pass  # here", "start": "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    total = 0"},
    ],
    ids=["two statements", "one statement", "a question", "behind clipping"],
)
def test_the_step_gives_the_norm(parts: dict[str, str]) -> None:
    code, gaps = converted(**parts)
    assert not gaps
    assert (
        "    total = optax.tree.norm(grads)\n    opt.update(model, grads)\n" in code and "total = total.item()" in code
    )
    assert code.count("scale = jnp.minimum(1.0 / ") == ("start" in parts), "float('inf') clips nothing"


@pytest.mark.parametrize(
    "parts",
    [
        {"square": "total += p.grad.norm(1).item() ** 2"},
        {"square": "total += p.grad.norm().item() ** 3"},
        {"square": "total += p.norm().item() ** 2 + p.grad.norm().item()"},
        {"start": "total = 1"},
        {"root": "total ** 0.25"},
        {"parameters": "list(model.parameters())[:1]"},
    ],
    ids=["another norm", "another power", "another value", "another start", "another root", "some of them"],
)
def test_other_sums_over_gradients_stay(parts: dict[str, str]) -> None:
    assert converted(**parts)[1]


PROGRAM = """\
import math
import torch
from torch import nn

x = torch.linspace(-1, 1, 24).reshape(8, 3)
model = nn.Linear(3, 2)
nn.init.constant_(model.weight, 0.3)
nn.init.constant_(model.bias, 0.1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
{function}
for i in range(4):
    opt.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    {lines}
    opt.step()
    losses.append(float(norm))
"""
WALK = "for p in model.parameters()"
LOOP_OF = "total = 0.\n{0}for p in {1}:\n{0}    total += {2}\n{0}"
FORMS = {
    "of stacked norms": f"norm = torch.norm(torch.stack([torch.norm(p.grad.detach(), 2.0) {WALK}]), 2.0)",
    "of stacked norms, a method": f"norm = torch.stack([p.grad.norm(p=2) {WALK} if p.grad is not None]).norm(2).item()",
    "of squares of elements": f"norm = sum((p.grad ** 2).sum() {WALK}).sqrt()",
    "of squares of numbers": f"norm = math.sqrt(sum([torch.sum(p.grad.data.pow(2)).item() {WALK}]))",
    "of products": f"norm = torch.sqrt(sum((p.grad * p.grad).sum() {WALK}))",
    "under another name": LOOP_OF.format("    ", "model.parameters()", "p.grad.square().sum().item()")
    + "norm = total ** 0.5",
}
BODY = LOOP_OF.format("    ", "net.parameters()", "p.grad.data.norm(2).item() ** 2")
FUNCTIONS = {
    "a loop": f'def norm_of(net):\n    """Of all."""\n    {BODY}return total ** 0.5\n',
    "a name": f"def norm_of(net):\n    {BODY}total = math.sqrt(total)\n    return total\n",
    "an expression": "def norm_of(ps):\n    return torch.norm(torch.stack([p.grad.norm() for p in ps])).item()\n",
}


@pytest.mark.parametrize("name", [*FORMS, *FUNCTIONS])
def test_norms_are_told_however_they_are_written(name: str) -> None:
    given = "model.parameters()" if name == "an expression" else "model"
    lines = FORMS.get(name, f"norm = norm_of({given})")
    pair = sides(PROGRAM.format(function=FUNCTIONS.get(name, ""), lines=lines), "logged_norms")
    assert not pair.gaps()
    assert "norm = optax.tree.norm(grads)" in pair.translation.code
    assert "norm_of" not in pair.translation.code
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)


@pytest.mark.parametrize(
    "lines",
    [
        f"norm = sum((p.grad ** 3).sum() {WALK}) ** 0.5",
        f"norm = torch.norm(torch.stack([p.grad.norm(1) {WALK}]), 2)",
        f"norm = torch.norm(torch.stack([p.norm() {WALK}]))\n    print(model.weight.grad)",
        f"norm = sum(p.grad.pow(2).sum() {WALK} if p.dim() > 1) ** 0.5",
        LOOP_OF.format("    ", "model.parameters()", "p.grad.square().sum().item()")
        + "norm = total ** 0.5\n    print(total)",
    ],
    ids=["another power", "another norm", "a norm of weights", "of some", "a sum that is read"],
)
def test_other_values_of_gradients_stay(lines: str) -> None:
    assert convert(PROGRAM.format(function="", lines=lines)).gaps
