"""The norm of all gradients, added up to be printed between the backward pass and the step."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

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
