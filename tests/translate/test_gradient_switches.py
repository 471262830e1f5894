"""``torch.set_grad_enabled`` with a constant is the context that does the same: no gradients, or all of them."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

from .training_sides import trained

TARGET = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

model = nn.Linear(3, 1)
batches = [torch.tensor([[1., 2, 3], [k, 0, -1]]) for k in range(6)]
# train
opt = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
for x in batches:
    opt.zero_grad()
    with {mode}:
        target = model(x + 1) * 0.5
    loss = F.mse_loss(model(x), target)
    loss.backward()
    opt.step()
    losses.append(loss.item())
"""


@pytest.mark.parametrize(
    ("mode", "stopped"),
    [
        ("torch.no_grad()", True),
        ("torch.set_grad_enabled(False)", True),
        ("torch.set_grad_enabled(mode=False)", True),
        ("torch.set_grad_enabled(True)", False),
        ("torch.enable_grad()", False),
    ],
)
def test_a_target_in_a_step_has_the_gradient_that_its_context_says(mode: str, stopped: bool) -> None:
    run = trained(TARGET.format(mode=mode), lists=("losses",))
    assert ("stop_gradient" in run.translation.code) is stopped


@pytest.mark.parametrize(
    "head",
    [
        "@torch.set_grad_enabled(False)\ndef f(net, x):\n    return net(x)\n",
        "def f(net, x):\n    with torch.set_grad_enabled(False):\n        return net(x)\n",
    ],
)
def test_what_leaves_a_function_without_gradients_is_stopped(head: str) -> None:
    result = translate(
        f"import torch\nfrom torch import nn\n\nnet = nn.Linear(2, 2)\n\n\n{head}\n\nf(net, torch.ones(2))\n"
    )
    assert not result.gaps
    assert "return jax.lax.stop_gradient(net(x))" in result.code
    assert "set_grad_enabled" not in result.code
