"""Buffers that a call replaces by others of another shape: each observation begins with those of the constructor."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import VerdictKind

from .conftest import Check

TORCH = """
class Bank(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.register_buffer("bank", torch.zeros(0, dim))
        self.long = False

    def forward(self, x):
        kept = 2 if self.long else 1
        self.bank = torch.cat([self.bank, x.detach().reshape(-1, x.shape[-1])])
        self.long = True
        return kept * x + self.bank.sum(0)
"""
JAX = """
class Buffer(nnx.Variable):
    pass


class Bank(nnx.Module):
    def __init__(self, dim: int, *, rngs: nnx.Rngs):
        self.bank = Buffer(jnp.zeros((0, dim)))
        self.long = False

    def __call__(self, x):
        kept = 2 if self.long else 1
        self.bank.set_value(jnp.concatenate([self.bank[...], jax.lax.stop_gradient(x).reshape(-1, x.shape[-1])]))
        self.long = True
        return kept * x + self.bank.sum(0)
"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("", ""),
        (".set_value(jnp.concatenate([self.bank[...], ", "[...] = (jnp.concatenate([self.bank[...], "),
        ("kept * x", "2 * x"),
        ("self.bank[...], jax", "self.bank[...], 2 * jax"),
    ],
    ids=["right", "stays empty", "of a second call", "another value"],
)
def test_a_bank_that_grows_begins_anew(right: str, wrong: str, check: Check) -> None:
    wanted = VerdictKind.DIFFERENT if wrong else VerdictKind.EQUIVALENT
    verdict = check(TORCH, JAX.replace(right, wrong) if wrong else JAX, "Bank")
    assert verdict.verdict is wanted, verdict.reason
