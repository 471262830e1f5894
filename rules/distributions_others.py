"""Transforms of ``torch.distributions``, and what of that module has no form in JAX."""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Object
from t2j_lsp.translate.rule.library import Trait, same_attribute, torch_class, trait
from t2j_lsp.translate.rule.record import Call, Piece, Row, refuse, rule

from .distributions import PREFIX

TRANSFORM = f"{PREFIX}Transform"
PARAMETERS = {
    "ExpTransform": "cache_size=0",
    "TanhTransform": "cache_size=0",
    "SigmoidTransform": "cache_size=0",
    "SoftplusTransform": "cache_size=0",
    "PowerTransform": "exponent, cache_size=0",
    "ComposeTransform": "parts, cache_size=0",
    "AffineTransform": "loc, scale, event_dim=0, cache_size=0",
}
"""Transforms of each number, and what they are made from."""


def register(name: str, parameters: str) -> None:
    """The constructor of a transform."""
    long = f"{PREFIX}transforms.{name}"
    for one in (PREFIX + name, long):
        torch_class(one, annotation=name, fact=Object("transform", PREFIX + name))
        trait(Trait.COPIED_CLASS, one)
    names = [one.partition("=")[0] for one in parameters.split(", ") if one != "event_dim=0"]

    @rule(
        f"{PREFIX}{name}({parameters})",
        jax=f"{name}({', '.join(n for n in names if n != 'cache_size')})",
        aliases=[long],
        result=lambda call: Object("transform", PREFIX + name),
    )
    def make(call: Call) -> Piece:
        parts = [f"{p}={{{p}}}" if p == "cache_size" else f"{{{p}}}" for p in names if call.given(p)]
        return call.emit(f"{name}({', '.join(parts)})")


for one, stated in PARAMETERS.items():
    register(one, stated)
for one in (TRANSFORM, f"{PREFIX}transforms.Transform"):
    torch_class(
        one,
        annotation="Transform",
        value="Transform",
        fact=Object("transform", TRANSFORM),
        derived="a transform of your own; derive it from t2j's Transform, with forward, backward and"
        " log_abs_det_jacobian",
        called="transform" if one == TRANSFORM else None,
    )
trait(Trait.MEMBERS_HAVE_RULES, TRANSFORM)
Row(
    f"{TRANSFORM}.log_abs_det_jacobian(self, x, y)",
    "{self}.log_abs_det_jacobian({x}, {y})",
)
same_attribute(f"{TRANSFORM}.inv", "unknown")
for one in ("loc", "scale"):
    same_attribute(f"{PREFIX}AffineTransform.{one}")
same_attribute(f"{PREFIX}PowerTransform.exponent")
same_attribute(f"{PREFIX}ComposeTransform.parts", "unknown")
for one, reason in {
    "domain": "A condition on values: compare them.",
    "codomain": "A condition on values: compare them.",
    "sign": "It is 1, or jnp.sign(scale) of an AffineTransform.",
    "bijective": "All of t2j's transforms are.",
    "event_dim": "It is 0: all of t2j's transforms are of each number.",
    "with_cache": "Make it with cache_size=1.",
    "forward_shape": "The shape stays: all of t2j's transforms are of each number.",
    "inverse_shape": "The shape stays: all of t2j's transforms are of each number.",
}.items():
    refuse(f"{TRANSFORM}.{one}", reason)

# Not there --------------------------------------------------------------------------------------------------------

NUMPYRO = "JAX has no counterpart; numpyro.distributions.{} has these parameters."
for one, module, reason in (
    ("LowRankMultivariateNormal", "lowrank_multivariate_normal", NUMPYRO.format("LowRankMultivariateNormal")),
    ("Wishart", "wishart", NUMPYRO.format("Wishart")),
    ("LKJCholesky", "lkj_cholesky", NUMPYRO.format("LKJCholesky")),
    ("VonMises", "von_mises", "jax.scipy.stats.vonmises has the density; numpyro.distributions.VonMises has draws."),
    (
        "ContinuousBernoulli",
        "continuous_bernoulli",
        "Write its log_prob out: the Bernoulli one plus the logarithm of 2 * arctanh(1 - 2 * p) / (1 - 2 * p).",
    ),
    (
        "LogisticNormal",
        "logistic_normal",
        "Draw normal numbers z, and take jax.nn.softmax of z with a 0 behind; this is no transform of each number.",
    ),
    (
        "GeneralizedPareto",
        "generalized_pareto",
        "Draws are scale * jnp.expm1(concentration * e) / concentration + loc.",
    ),
    ("LogitRelaxedBernoulli", "relaxed_bernoulli", "The logit of a RelaxedBernoulli, which converts."),
    ("ExpRelaxedCategorical", "relaxed_categorical", "The logarithm of a RelaxedOneHotCategorical, which converts."),
    (
        "ExponentialFamily",
        "exp_family",
        "A base for entropies by autograd; each of t2j's distributions has its own.",
    ),
):
    known = one not in ("LogitRelaxedBernoulli", "ExpRelaxedCategorical")
    long = f"{PREFIX}{module}.{one}"
    refuse(PREFIX + one if known else long, reason, aliases=[long] if known else [])

VECTORS = "Transforms that convert are of each number; write this one out as a function of the last axis."
for one, reason in {
    "AbsTransform": "It has no inverse: HalfNormal and HalfCauchy convert, and jnp.abs of draws.",
    "CatTransform": "Apply each transform to its slice, and jnp.concatenate.",
    "StackTransform": "Apply each transform to its slice, and jnp.stack.",
    "CorrCholeskyTransform": VECTORS,
    "CumulativeDistributionTransform": "Write it out: the cumulative probability of the distribution.",
    "IndependentTransform": "Sum log_abs_det_jacobian over the last axes.",
    "LowerCholeskyTransform": "Write it out: jnp.tril(x, -1) plus the exponentials of the diagonal.",
    "PositiveDefiniteTransform": "Write it out: L @ L.mT, and L as that of LowerCholeskyTransform.",
    "ReshapeTransform": "x.reshape(...) of draws.",
    "SoftmaxTransform": "jax.nn.softmax(x), which is no transform of each number.",
    "StickBreakingTransform": VECTORS,
    "identity_transform": "A function that gives what it gets.",
}.items():
    refuse(PREFIX + one, reason, aliases=[f"{PREFIX}transforms.{one}"])
CONSTRAINTS = "A condition on values, which t2j's distributions don't test: compare them, x > 0."
refuse(f"{PREFIX}constraints.*", CONSTRAINTS)
for one in ("biject_to", "transform_to"):
    refuse(
        PREFIX + one,
        "Name the transform: jnp.exp or jax.nn.softplus for positive numbers, jax.nn.sigmoid for probabilities.",
        aliases=[f"{PREFIX}constraint_registry.{one}"],
    )
refuse(
    f"{PREFIX}register_kl",
    "Add a method `divergence(self, other)` to the class of the first distribution.",
    aliases=[f"{PREFIX}kl.register_kl"],
)
