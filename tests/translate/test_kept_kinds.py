"""Buffers that a call gives another shape or dtype: the variable gets the new array; updates are written into it."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from .side_by_side import sides

NET = """
import torch
from torch import nn


class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("held", {begun})
        self.register_buffer("rate", torch.full((4,), 0.5))

    def forward(self, x):
        {given}
        return x * self.held.sum() + self.rate
"""
CASES = {
    "none at first": ("torch.empty(0)", "self.held = torch.outer(self.rate, x[0]).cos()", "set_value"),
    "none at first, kept while it is long enough": (
        "torch.zeros(0)",
        "if self.held.shape[0] < x.shape[0]:\n            self.held = x.detach() * 2",
        "set_value",
    ),
    "a bank that grows": ("torch.zeros(0, 4)", "self.held = torch.cat([self.held, x.detach()])", "set_value"),
    "a queue": ("torch.ones(3, 4)", "self.held = torch.cat([x.detach(), self.held], dim=0)[:4]", "set_value"),
    "a number": ("torch.ones(4)", "self.held = x.detach().abs().mean()", "set_value"),
    "a fraction of a count": ("torch.tensor(3)", "self.held = self.held / 2", "set_value"),
    "the last": ("torch.zeros(1, 4)", "self.held = x.detach()", "set_value"),
    "an average": ("torch.zeros(4)", "self.held = 0.9 * self.held + 0.1 * x.detach().mean(0)", "[...] ="),
    "a count": ("torch.tensor(0)", "self.held = self.held + 1", "[...] ="),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_buffer_is_given_is_there_as_it_is(case: str) -> None:
    begun, given, written = CASES[case]
    both = sides(NET.format(begun=begun, given=given), "kept_kinds")
    assert both.gaps() == [] and f"self.held{'.' * (written[0] == 's')}{written}" in both.translation.code
    reference, net = both.torch.A(), both.jax.A(rngs=nnx.Rngs(0))
    step = nnx.jit(lambda net, x: net(x))
    for seed in range(2):
        x = np.random.default_rng(seed).normal(size=(2, 4)).astype(np.float32)
        np.testing.assert_allclose(step(net, jnp.asarray(x)), reference(torch.tensor(x)).detach(), rtol=1e-5)
        assert net.held.shape == tuple(reference.held.shape)
        assert net.held.dtype.kind == reference.held.numpy().dtype.kind
        np.testing.assert_allclose(net.held[...], reference.held, rtol=1e-6)
