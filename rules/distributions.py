"""``torch.distributions``, as helpers with PyTorch's parameters and methods."""

from __future__ import annotations

from collections.abc import Iterable

from t2j_lsp.translate.rule.facts import Fact, Object, Tensor
from t2j_lsp.translate.rule.library import Trait, same_attribute, torch_class, trait
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, refuse, rule

PREFIX = "torch.distributions."
BASE = f"{PREFIX}Distribution"
PROBS = "probs=None, logits=None"
PARAMETERS = {
    "Normal": "loc, scale",
    "LogNormal": "loc, scale",
    "HalfNormal": "scale",
    "MultivariateNormal": "loc, covariance_matrix=None, precision_matrix=None, scale_tril=None",
    "Uniform": "low, high",
    "Exponential": "rate",
    "Laplace": "loc, scale",
    "Cauchy": "loc, scale",
    "HalfCauchy": "scale",
    "Gumbel": "loc, scale",
    "Weibull": "scale, concentration",
    "Pareto": "scale, alpha",
    "Kumaraswamy": "concentration1, concentration0",
    "Gamma": "concentration, rate",
    "Chi2": "df",
    "InverseGamma": "concentration, rate",
    "Beta": "concentration1, concentration0",
    "Dirichlet": "concentration",
    "StudentT": "df, loc=0.0, scale=1.0",
    "FisherSnedecor": "df1, df2",
    "Bernoulli": PROBS,
    "Categorical": PROBS,
    "OneHotCategorical": PROBS,
    "OneHotCategoricalStraightThrough": PROBS,
    "Multinomial": f"total_count=1, {PROBS}",
    "Binomial": f"total_count=1, {PROBS}",
    "NegativeBinomial": f"total_count, {PROBS}",
    "Geometric": PROBS,
    "Poisson": "rate",
    "RelaxedBernoulli": f"temperature, {PROBS}",
    "RelaxedOneHotCategorical": f"temperature, {PROBS}",
    "Independent": "base_distribution, reinterpreted_batch_ndims",
    "MixtureSameFamily": "mixture_distribution, component_distribution",
    "TransformedDistribution": "base_distribution, transforms",
}
"""Distributions, and what they are made from."""
MODULES = {
    "LogNormal": "log_normal",
    "HalfNormal": "half_normal",
    "HalfCauchy": "half_cauchy",
    "InverseGamma": "inverse_gamma",
    "MultivariateNormal": "multivariate_normal",
    "StudentT": "studentT",
    "OneHotCategorical": "one_hot_categorical",
    "OneHotCategoricalStraightThrough": "one_hot_categorical",
    "NegativeBinomial": "negative_binomial",
    "RelaxedBernoulli": "relaxed_bernoulli",
    "RelaxedOneHotCategorical": "relaxed_categorical",
    "MixtureSameFamily": "mixture_same_family",
    "TransformedDistribution": "transformed_distribution",
}
"""Where a distribution is defined, if that isn't its name in small letters."""


def state_class(name: str, module: str) -> None:
    """A distribution's class: what annotations say, what is known of its values, and its long name."""
    for one in (PREFIX + name, f"{PREFIX}{module}.{name}"):
        torch_class(one, annotation=name, fact=Object("distribution", PREFIX + name))


def register(name: str, parameters: str) -> None:
    """The constructor of a distribution."""
    module = MODULES.get(name, name.lower())
    state_class(name, module)
    trait(Trait.COPIED_CLASS, PREFIX + name, f"{PREFIX}{module}.{name}")
    names = [one.partition("=")[0] for one in parameters.split(", ")]
    optional = {one.partition("=")[0] for one in parameters.split(", ") if "=" in one}

    @rule(
        f"{PREFIX}{name}({parameters}, validate_args=None)",
        jax=f"{name}({', '.join(names)})",
        aliases=[f"{PREFIX}{module}.{name}"],
        ignore=["validate_args"],
        result=lambda call: Object("distribution", PREFIX + name),
    )
    def make(call: Call) -> Piece:
        parts = [f"{p}={{{p}}}" if p in optional else f"{{{p}}}" for p in names if call.given(p)]
        return call.emit(f"{name}({', '.join(parts)})")


for one, stated in PARAMETERS.items():
    register(one, stated)
torch_class(
    BASE,
    annotation="Distribution",
    value="Distribution",
    fact=Object("distribution", BASE),
    derived="a distribution of your own; derive it from t2j's Distribution, with draws from rngs",
    called="distribution",
)
torch_class(f"{PREFIX}distribution.Distribution", annotation="Distribution", value="Distribution")
trait(Trait.MEMBERS_HAVE_RULES, BASE)

# Methods and attributes, looked up here for every distribution ----------------------------------------------------

INTEGERS = {"Categorical"}


def owner_of(call: Call) -> str:
    """The class of the distribution whose method is called; Distribution where it is any."""
    fact = call["self"].fact
    name = fact.name.removeprefix(PREFIX) if isinstance(fact, Object) else ""
    return name or "Distribution"


def drawn(call: Call) -> Fact:
    """What draws are."""
    owner = owner_of(call)
    known = owner not in ("Distribution", "Independent", "MixtureSameFamily")
    return Tensor(None, ("int" if owner in INTEGERS else "float") if known else None)


for method in ("sample", "rsample"):

    @rule(
        f"{BASE}.{method}(self, sample_shape=torch.Size([]))",
        jax=f"distribution.{method}(sample_shape, rngs=rngs)",
        random=True,
        result=drawn,
    )
    def draw(call: Call, method: str = method) -> Piece:
        shape = "{sample_shape:shape}, " if call.given("sample_shape") else ""
        return call.emit(f"{{self}}.{method}({shape}rngs={{rngs}})", rngs=call.site.rngs())


Row(f"{BASE}.sample_n(self, n)", "{self}.sample(({n},), rngs={rngs})", result="tensor")
Row(f"{BASE}.log_prob(self, value)", "{self}.log_prob({value})")
Row(f"{BASE}.entropy(self)", "{self}.entropy()")
Row(f"{BASE}.perplexity(self)", "jnp.exp({self}.entropy())")
for attribute in ("mean", "mode", "variance", "stddev"):
    same_attribute(f"{BASE}.{attribute}")
for attribute in ("batch_shape", "event_shape"):
    same_attribute(f"{BASE}.{attribute}", "shape")


def state_attributes(owner: str, names: Iterable[str], result: str = "tensor") -> None:
    """Attributes that one distribution has."""
    for name in names:
        same_attribute(f"{PREFIX}{owner}.{name}", result)


def state_parameters(owner: str, parameters: str) -> None:
    """What a distribution was made from, as its attributes."""
    names = [one.partition("=")[0] for one in parameters.split(", ")]
    state_attributes(owner, [n for n in names if n != "validate_args" and n not in OTHERWISE])


OTHERWISE = {"base_distribution", "mixture_distribution", "component_distribution", "transforms"}
"""Parameters that are no tensors."""
for one, stated in PARAMETERS.items():
    state_parameters(one, stated)
for one in ("Bernoulli", "Categorical", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Geometric"):
    state_attributes(one, ["param_shape"], "shape")
for one in ("Binomial", "NegativeBinomial"):
    state_attributes(one, ["param_shape"], "shape")
for one in ("Independent", "TransformedDistribution", "LogNormal", "HalfNormal", "HalfCauchy", "InverseGamma"):
    state_attributes(one, ["base_dist"], "distribution")
state_attributes("MixtureSameFamily", ["mixture_distribution", "component_distribution"], "distribution")
same_attribute(f"{PREFIX}TransformedDistribution.transforms", "unknown")

# Divergences ------------------------------------------------------------------------------------------------------

WITHOUT_DIVERGENCE = {
    *("HalfCauchy", "Weibull", "Kumaraswamy", "StudentT", "FisherSnedecor", "NegativeBinomial", "Multinomial"),
    *("RelaxedBernoulli", "RelaxedOneHotCategorical", "MixtureSameFamily"),
}
ANY = {"Distribution"}


@rule(
    f"{PREFIX}kl_divergence(p, q)",
    jax="p.kl_divergence(q)",
    aliases=[f"{PREFIX}kl.kl_divergence"],
    fidelity=CLOSE,
    note="Only pairs of one class: another pair raises NotImplementedError.",
)
def kl_divergence(call: Call) -> Piece | Refusal:
    """The classes are compared where both are known."""
    facts = call["p"].fact, call["q"].fact
    names = [f.name.removeprefix(PREFIX) or "Distribution" if isinstance(f, Object) else "Distribution" for f in facts]
    known = [name for name in names if name not in ANY]
    if len(known) == 2 and known[0] != known[1]:
        return call.refuse(
            f"t2j has divergences of distributions of one class, not of {known[0]} from {known[1]}:"
            " write the closed form, or average p.log_prob(x) - q.log_prob(x) over draws of p"
        )
    for name in known:
        if name in WITHOUT_DIVERGENCE:
            return call.refuse(f"PyTorch has no divergence of {name} either: average p.log_prob(x) - q.log_prob(x)")
        if name == "TransformedDistribution":
            return call.refuse(
                "if the transforms are the same, it is that of the base distributions: p.base_dist, q.base_dist"
            )
    return call.emit("{p}.kl_divergence({q})")


# Cumulative probabilities, which JAX has as functions -------------------------------------------------------------

STATS = {
    "Normal": ("norm", "{self}.loc, {self}.scale", True),
    "Exponential": ("expon", "scale=1 / {self}.rate", True),
    "Laplace": ("laplace", "{self}.loc, {self}.scale", False),
    "Cauchy": ("cauchy", "{self}.loc, {self}.scale", True),
    "Uniform": ("uniform", "{self}.low, {self}.high - {self}.low", True),
    "Gamma": ("gamma", "{self}.concentration, scale=1 / {self}.rate", False),
}
"""What jax.scipy.stats calls a distribution and its parameters, and whether it has the inverse."""
for one, (function, settings, inverts) in STATS.items():
    Row(f"{PREFIX}{one}.cdf(self, value)", f"jax.scipy.stats.{function}.cdf({{value}}, {settings})")
    if inverts:
        Row(f"{PREFIX}{one}.icdf(self, value)", f"jax.scipy.stats.{function}.ppf({{value}}, {settings})")
for one in ("cdf", "icdf"):
    refuse(
        f"{BASE}.{one}",
        "Write it out: jax.scipy.stats and jax.scipy.special have those of common distributions.",
    )

# What is not there ------------------------------------------------------------------------------------------------

DRAWN_ONLY = {
    *("Categorical", "Bernoulli", "OneHotCategorical", "Multinomial", "Binomial", "NegativeBinomial", "Geometric"),
    *("Poisson", "MixtureSameFamily"),
}
for one in sorted(DRAWN_ONLY):
    refuse(f"{PREFIX}{one}.rsample", "PyTorch has no rsample of it either: draws have no gradient.")
ENTROPY = "PyTorch has no entropy of it either: average -log_prob over draws."
for one in (
    *("Poisson", "NegativeBinomial", "FisherSnedecor", "RelaxedBernoulli", "RelaxedOneHotCategorical"),
    *("MixtureSameFamily", "TransformedDistribution"),
):
    refuse(f"{PREFIX}{one}.entropy", ENTROPY)
for one in ("Binomial", "Multinomial"):
    refuse(f"{PREFIX}{one}.entropy", "A sum over all counts: write it out, -jnp.sum(jnp.exp(log_prob) * log_prob).")
NO_MOMENT = "PyTorch has none of it either."
for one in ("RelaxedBernoulli", "RelaxedOneHotCategorical", "TransformedDistribution"):
    for attribute in ("mean", "mode", "variance", "stddev"):
        refuse(f"{PREFIX}{one}.{attribute}", NO_MOMENT)
for attribute in ("mean", "variance", "stddev"):
    refuse(f"{PREFIX}Categorical.{attribute}", "It is NaN in PyTorch: indices have no mean.")
MODE = {
    "Uniform": "It is NaN in PyTorch: no number is the most likely one.",
    "Multinomial": NO_MOMENT,
    "MixtureSameFamily": NO_MOMENT,
    "Beta": "Write it out: (a - 1) / (a + b - 2) for a and b above 1.",
    "Dirichlet": "Write it out: (a - 1) / (a - 1).sum(-1, keepdims=True) for a above 1.",
    "FisherSnedecor": "Write it out: (df1 - 2) / df1 * df2 / (df2 + 2) for df1 above 2.",
    "Kumaraswamy": "Write it out: ((a - 1) / (a * b - 1)) ** (1 / a) for a and b of at least 1.",
}
for one, reason in MODE.items():
    refuse(f"{PREFIX}{one}.mode", reason)
for one, reason in {
    "expand": "Give the parameters their shape: jnp.broadcast_to(loc, shape), before the distribution is made.",
    "enumerate_support": "Name the values: jnp.arange(n), or jnp.eye(n) of a one-hot distribution.",
    "support": "A condition on values: compare them, low <= x.",
    "arg_constraints": "A condition on parameters: compare them.",
    "has_rsample": "The class says it: all have draws with gradients but those of counts and indices.",
    "has_enumerate_support": "The class says it: Categorical, OneHotCategorical, Bernoulli and Binomial have.",
    "set_default_validate_args": "T2j's distributions don't compare arguments with what they allow.",
}.items():
    refuse(f"{BASE}.{one}", reason)
