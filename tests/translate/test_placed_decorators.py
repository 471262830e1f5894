"""Helpers that are written in place keep the decorators of the functions inside them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate
from tests.translate.convert import HEAD

WEIGHTED = """
class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = nn.BCELoss(weight=torch.tensor([0.5, 2.0]))

    def forward(self, p, t):
        return self.loss(p, t)
"""
"""Its helper's one function has a gradient of its own, by `@jax.custom_jvp`, which went: it raised, in silence."""


def test_a_loss_with_a_gradient_of_its_own_is_written_in_place() -> None:
    code = translate(HEAD + WEIGHTED, Options()).code
    assert code.count("@jax.custom_jvp") == code.count(".defjvps(") == 1
    source: dict[str, Any] = {}
    target: dict[str, Any] = {}
    exec(compile(HEAD + WEIGHTED, "<source>", "exec"), source)
    exec(compile(code, "<converted>", "exec"), target)
    p, t = np.array([[0.2, 0.9]], np.float32), np.array([[1.0, 0.0]], np.float32)
    given = torch.tensor(p, requires_grad=True)
    expected = source["Weighted"]()(given, torch.tensor(t))
    expected.backward()
    from flax import nnx

    loss = target["Weighted"](rngs=nnx.Rngs(0))
    value, gradient = jax.value_and_grad(lambda x: loss(x, jnp.asarray(t)))(jnp.asarray(p))
    np.testing.assert_allclose(value, expected.detach(), rtol=1e-5)
    np.testing.assert_allclose(gradient, given.grad, rtol=1e-4)
