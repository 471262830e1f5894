"""Conversions of ``rules/distributions.py`` in text; what the helpers compute is in tests/helpers."""

from __future__ import annotations

import ast

import pytest
import torch.distributions

from t2j_lsp.contract import Options
from t2j_lsp.plugins import load_rules
from t2j_lsp.translate import translate
from t2j_lsp.translate.rule.record import REGISTRY

load_rules()
HEADER = """import torch
import torch.distributions as D
from torch.distributions import Normal, kl_divergence


def f(x: torch.Tensor, m: torch.Tensor, d: D.Distribution, n: Normal, flag: bool):
"""


def converted(statement: str) -> tuple[str, list[str]]:
    """The last line of the function, and the reasons of gaps."""
    result = translate(f"{HEADER}    return {statement}\n", Options())
    function = next(n for n in ast.parse(result.code).body if isinstance(n, ast.FunctionDef) and n.name == "f")
    (returned,) = (n for n in function.body if isinstance(n, ast.Return))
    assert returned.value is not None
    return ast.unparse(returned.value), [gap.reason for gap in result.gaps]


FORMS = [
    ("D.Uniform(0.0, x).sample()", "Uniform(0.0, x).sample(rngs=rngs)"),
    ("D.normal.Normal(x, 1.0).rsample((3,))", "Normal(x, 1.0).rsample((3,), rngs=rngs)"),
    ("D.Categorical(x).sample(torch.Size([2]))", "Categorical(probs=x).sample((2,), rngs=rngs)"),
    ("D.StudentT(3.0, scale=x)", "StudentT(3.0, scale=x)"),
    ("D.Gamma(x, rate=x, validate_args=False)", "Gamma(x, x)"),
    ("D.MultivariateNormal(x, scale_tril=m)", "MultivariateNormal(x, scale_tril=m)"),
    ("D.Independent(Normal(x, 1.0), 1).log_prob(x)", "Independent(Normal(x, 1.0), 1).log_prob(x)"),
    ("d.sample()", "d.sample(rngs=rngs)"),
    ("d.sample_n(4)", "d.sample((4,), rngs=rngs)"),
    ("(d if flag else n).rsample()", "(d if flag else n).rsample(rngs=rngs)"),
    ("n.perplexity()", "jnp.exp(n.entropy())"),
    ("n.mean.unsqueeze(0)", "n.mean[None]"),
    ("n.batch_shape[0]", "n.batch_shape[0]"),
    ("kl_divergence(n, Normal(0.0, 1.0))", "n.kl_divergence(Normal(0.0, 1.0))"),
    ("D.kl.kl_divergence(d, n)", "d.kl_divergence(n)"),
    ("n.cdf(x)", "jax.scipy.stats.norm.cdf(x, n.loc, n.scale)"),
    ("D.Independent(n, 1).base_dist.log_prob(x)", "Independent(n, 1).base_dist.log_prob(x)"),
    ("isinstance(d, D.Distribution)", "isinstance(d, Distribution)"),
    (
        "D.TransformedDistribution(n, D.transforms.TanhTransform(cache_size=1))",
        "TransformedDistribution(n, TanhTransform(cache_size=1))",
    ),
    ("D.ExpTransform().inv(x)", "ExpTransform().inv(x)"),
    ("D.AffineTransform(0.0, 2.0).log_abs_det_jacobian(x, x)", "AffineTransform(0.0, 2.0).log_abs_det_jacobian(x, x)"),
]
REFUSED = [
    ("D.Categorical(logits=x).rsample()", "draws have no gradient"),
    ("D.Categorical(logits=x).mean", "NaN in PyTorch"),
    ("D.Poisson(x).entropy()", "no entropy of it either"),
    ("kl_divergence(n, D.Laplace(x, 1.0))", "not of Normal from Laplace"),
    ("kl_divergence(D.Weibull(x, x), d)", "no divergence of Weibull either"),
    ("d.cdf(x)", "jax.scipy.stats"),
    ("n.expand((3,))", "jnp.broadcast_to"),
    ("n.support", "compare them"),
    ("n._validate_args", "no rule for torch.distributions.Normal._validate_args"),
    ("D.AffineTransform(x, x, event_dim=1)", "event_dim"),
    ("D.ExpTransform().with_cache()", "cache_size=1"),
    ("D.Wishart(x, m)", "numpyro.distributions.Wishart"),
    ("D.constraints.positive", "condition on values"),
    ("D.biject_to(D.constraints.positive)", "Name the transform"),
    ("D.StickBreakingTransform()", "of each number"),
]


@pytest.mark.parametrize(("statement", "wanted"), FORMS)
def test_forms(statement: str, wanted: str) -> None:
    assert converted(statement) == (wanted, [])


@pytest.mark.parametrize(("statement", "reason"), REFUSED)
def test_what_has_no_form_says_why(statement: str, reason: str) -> None:
    _, gaps = converted(statement)
    assert [gap for gap in gaps if reason in gap] != []


def test_a_distribution_of_ones_own_is_left_alone() -> None:
    source = "import torch.distributions as D\n\n\nclass Mine(D.Distribution):\n    pass\n"
    result = translate(source, Options())
    assert [gap.reason for gap in result.gaps if "derive it from t2j's Distribution" in gap.reason] != []


def test_every_name_has_a_rule_of_its_own_under_both_of_its_names() -> None:
    """No name is answered for the whole package."""
    missing = []
    for name in torch.distributions.__all__:
        long = f"{getattr(torch.distributions, name).__module__}.{name}"
        alike = (f"torch.distributions.{name}", long)
        missing += [one for one in alike if one not in REGISTRY.rules]
    stated_as_classes = {"Distribution", "Transform"}
    assert {one.rpartition(".")[2] for one in missing} <= stated_as_classes | {"identity_transform"}
