"""Random numbers that don't reach a module's output: right code isn't accused, and a key that jit keeps is."""

from __future__ import annotations

import pytest

from t2j_lsp import convert
from t2j_lsp.contract import VerdictKind

from .conftest import Check

TORCH = """import torch
import torch.nn as nn

# t2j: x=f32[4, 5]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return x + SCALE * self.drop(x)
"""
JAX = """import jax
import jax.numpy as jnp
from flax import nnx

class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.drop = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x):
        return x + SCALE * DROPPED
"""
KEPT = (
    "(x if self.drop.deterministic else jnp.where(jax.random.bernoulli(jax.random.key(3), 0.5, x.shape), x / 0.5, 0.0))"
)


@pytest.mark.parametrize("scale", ["0.0", "1.0"])
def test_a_branch_whose_draws_have_no_effect_is_not_accused(scale: str, check: Check) -> None:
    verdict = check(TORCH.replace("SCALE", scale), JAX.replace("SCALE", scale).replace("DROPPED", "self.drop(x)"))
    assert verdict.verdict is VerdictKind.EQUIVALENT


def test_draws_that_jit_keeps_are_caught(check: Check) -> None:
    verdict = check(TORCH.replace("SCALE", "1.0"), JAX.replace("SCALE", "1.0").replace("DROPPED", KEPT))
    assert verdict.verdict is VerdictKind.DIFFERENT
    assert verdict.reason == "it draws the same random numbers in every call under jit"


def test_a_program_that_sets_its_seed_draws_the_same_in_every_call(check: Check) -> None:
    seeded = "        rngs = nnx.Rngs(0)\n        return x + rngs.normal(x.shape, x.dtype)\n"
    torch = TORCH[: TORCH.index("    def forward")] + (
        "    def forward(self, x):\n        torch.manual_seed(0)\n        return x + torch.randn_like(x)\n"
    )
    verdict = check(torch, JAX[: JAX.index("        return x")] + seeded)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason


ATTENTION = """import torch
import torch.nn as nn

# t2j: x=f32[4, 2, 6]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 3, dropout=0.4)

    def forward(self, x):
        return self.attention(x, x, x)
"""


def test_draws_of_batch_and_heads_are_those_of_one_axis(check: Check) -> None:
    """PyTorch's attention that gives its weights drops out of (batch * heads, L, S), JAX's of (batch, heads, L, S)."""
    jax = convert(ATTENTION).code
    assert check(ATTENTION, jax).verdict is VerdictKind.EQUIVALENT
    swapped = "self.weight_dropout(weights.swapaxes(0, 1)).swapaxes(0, 1)"
    wrong = jax.replace("self.weight_dropout(weights)", swapped)
    assert wrong != jax and check(ATTENTION, wrong).verdict is VerdictKind.DIFFERENT
