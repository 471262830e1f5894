"""Distributions are checked with common random numbers: right conversions hold, a planted mistake is found."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options, VerdictKind
from t2j_lsp.translate import translate

from .conftest import Check

SOURCE = """
import torch
import torch.distributions as D

# t2j: loc=f32[4, 3], spread=f32[4, 3]
def draw(loc: torch.Tensor, spread: torch.Tensor):
    scale = torch.exp(spread / 4)
    cauchy = D.Cauchy(loc, scale).rsample()
    gamma = D.Gamma(scale + 1, scale)
    number = gamma.rsample()
    smooth = D.Laplace(loc, scale).rsample((2,)) + D.Gumbel(loc, scale).rsample((2,))
    count = D.Poisson(scale * 2).sample() + D.Bernoulli(logits=loc).sample()
    squashed = D.TransformedDistribution(D.Normal(loc, scale), [D.TanhTransform(cache_size=1)])
    action = squashed.rsample()
    apart = D.kl_divergence(D.Independent(D.Normal(loc, scale), 1), D.Independent(D.Normal(0 * loc, 1 + 0 * loc), 1))
    return torch.atan(cauchy), number, gamma.log_prob(number), smooth, count, squashed.log_prob(action), apart
"""
MISTAKES = [
    ("Gamma(scale + 1, scale)", "Gamma(scale + 1, 1 / scale)"),
    ("Cauchy(loc, scale).rsample(", "Cauchy(loc, scale).sample("),
    ("Poisson(scale * 2)", "Poisson(scale * 3)"),
    ("Gamma(scale + 1, scale)", "Gamma(scale + 2, scale)"),
    ("Bernoulli(logits=loc)", "Bernoulli(logits=loc * 1.01)"),
    ("- 1 - jnp.log(ratio)", "- jnp.log(ratio)"),
]


def test_right_draws_hold(check: Check) -> None:
    code = translate(SOURCE, Options()).code
    verdict = check(SOURCE, code, "draw")
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason


@pytest.mark.parametrize(("right", "wrong"), MISTAKES)
def test_a_planted_mistake_is_found(right: str, wrong: str, check: Check) -> None:
    code = translate(SOURCE, Options()).code
    assert code.count(right) == 1
    assert check(SOURCE, code.replace(right, wrong), "draw").verdict is VerdictKind.DIFFERENT
