"""Backward passes by PyTorch's function, read as the method of what they differentiate."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp import convert

from .side_by_side import sides

PROGRAM = """\
import torch
from torch import nn

x = torch.linspace(-1, 1, 24).reshape(8, 3)
model = nn.Linear(3, 2)
nn.init.constant_(model.weight, 0.3)
nn.init.constant_(model.bias, 0.1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for i in range(4):
    opt.zero_grad()
    out = model(x)
    a, b = out.pow(2).mean(), out.abs().sum()
    {backward}
    opt.step()
    losses.append(a.item())
"""
PASSES = {
    "one": "torch.autograd.backward(a)",
    "one in a list": "torch.autograd.backward([b], retain_graph=True)",
    "several": "torch.autograd.backward((a, 0.1 * b))",
    "no weights": "torch.autograd.backward(tensors=a + b, grad_tensors=None)",
    "weights": "torch.autograd.backward([out], [torch.ones_like(out)])",
}


@pytest.mark.parametrize("name", PASSES)
def test_the_sum_is_differentiated(name: str) -> None:
    pair = sides(PROGRAM.format(backward=PASSES[name]), "called_backward")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)


@pytest.mark.parametrize("call", ["([a, b], [None, torch.tensor(2.0)])", "(a, inputs=[model.weight])", "(*[a])"])
def test_others_stay(call: str) -> None:
    assert convert(PROGRAM.format(backward=f"torch.autograd.backward{call}")).gaps
