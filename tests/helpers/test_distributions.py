"""Distributions beside PyTorch's: densities, entropies, divergences, their gradients, moments, and draws."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp.rules.helpers import (
    distributions,
    distributions_composed,
    distributions_continuous,
    distributions_discrete,
    distributions_gamma,
    transforms,
)

from .compare import array

MODULES = (
    distributions,
    distributions_composed,
    distributions_continuous,
    distributions_discrete,
    distributions_gamma,
    transforms,
)
PROBS = array(4, 3, low=0.1, high=2.0)
LOGITS = array(4, 3)
REAL, POSITIVE, OTHER = array(4, 3, seed=1), array(4, 3, low=0.3, high=2.0), array(3, low=0.3, high=2.0)
LARGE = array(4, 3, low=4.5, high=9.0)
UNIT = array(4, 3, low=0.05, high=0.95)
BITS = np.round(array(4, 3, low=0.0, high=1.0))
SHARES = POSITIVE / POSITIVE.sum(-1, keepdims=True)
COUNTS = np.floor(array(4, 3, low=0.0, high=6.0))
ONE_HOT = np.eye(3)[[0, 2, 1, 1]]
TRIL = np.tril(array(4, 3, 3, low=0.4, high=1.5))
COVARIANCE = TRIL @ np.swapaxes(TRIL, -2, -1)
WITHOUT_ENTROPY = {
    *("Poisson", "NegativeBinomial", "FisherSnedecor", "RelaxedBernoulli", "RelaxedOneHotCategorical"),
    *("Binomial", "Multinomial"),
}
CASES: list[tuple[str, dict[str, Any], np.ndarray]] = [
    ("Normal", {"loc": array(4, 3), "scale": OTHER}, REAL),
    ("LogNormal", {"loc": array(4, 3), "scale": OTHER}, POSITIVE),
    ("HalfNormal", {"scale": OTHER}, POSITIVE),
    ("Uniform", {"low": -POSITIVE - 2, "high": OTHER + 2}, REAL),
    ("Exponential", {"rate": OTHER}, POSITIVE),
    ("Laplace", {"loc": array(4, 3), "scale": OTHER}, REAL),
    ("Cauchy", {"loc": array(4, 3), "scale": OTHER}, REAL),
    ("HalfCauchy", {"scale": OTHER}, POSITIVE),
    ("Gumbel", {"loc": array(4, 3), "scale": OTHER}, REAL),
    ("Weibull", {"scale": POSITIVE, "concentration": OTHER + 1}, POSITIVE),
    ("Pareto", {"scale": POSITIVE, "alpha": OTHER + 2.5}, POSITIVE + 2),
    ("Kumaraswamy", {"concentration1": POSITIVE, "concentration0": OTHER}, UNIT),
    ("Gamma", {"concentration": POSITIVE, "rate": OTHER}, POSITIVE[::-1].copy()),
    ("Chi2", {"df": LARGE}, POSITIVE),
    ("InverseGamma", {"concentration": LARGE, "rate": OTHER}, POSITIVE),
    ("Beta", {"concentration1": POSITIVE, "concentration0": OTHER}, UNIT),
    ("Dirichlet", {"concentration": POSITIVE}, SHARES),
    ("StudentT", {"df": LARGE, "loc": array(4, 3), "scale": OTHER}, REAL),
    ("FisherSnedecor", {"df1": POSITIVE, "df2": LARGE}, POSITIVE),
    ("Categorical", {"probs": PROBS}, np.array([0, 2, 1, 1])),
    ("Categorical", {"logits": LOGITS}, np.array([[0, 2, 1, 1], [2, 2, 2, 0]])),
    ("Bernoulli", {"probs": array(4, 3, low=0.01, high=0.99)}, BITS),
    ("Bernoulli", {"logits": LOGITS}, BITS),
    ("Geometric", {"probs": UNIT}, COUNTS),
    ("Geometric", {"logits": LOGITS}, COUNTS),
    ("Poisson", {"rate": POSITIVE}, COUNTS),
    ("Binomial", {"total_count": 7, "probs": UNIT}, COUNTS),
    ("NegativeBinomial", {"total_count": POSITIVE, "logits": LOGITS}, COUNTS),
    ("NegativeBinomial", {"total_count": POSITIVE, "probs": UNIT}, COUNTS),
    ("Multinomial", {"total_count": 5, "probs": PROBS}, np.array([[5.0, 0, 0], [1, 2, 2], [0, 4, 1], [3, 1, 1]])),
    ("OneHotCategorical", {"logits": LOGITS}, ONE_HOT),
    ("OneHotCategoricalStraightThrough", {"probs": PROBS}, ONE_HOT),
    ("RelaxedBernoulli", {"temperature": np.array(0.7), "logits": LOGITS}, UNIT),
    ("RelaxedOneHotCategorical", {"temperature": np.array(0.7), "logits": LOGITS}, SHARES),
    ("MultivariateNormal", {"loc": array(4, 3), "scale_tril": TRIL}, REAL),
    ("MultivariateNormal", {"loc": array(3), "covariance_matrix": COVARIANCE}, REAL),
    ("MultivariateNormal", {"loc": array(4, 3), "precision_matrix": COVARIANCE[0]}, array(2, 4, 3)),
]


def helper_class(name: str) -> Any:
    """A class of the helpers."""
    return next(getattr(module, name) for module in MODULES if hasattr(module, name))


def tensors_of(parameters: dict[str, Any]) -> dict[str, Any]:
    return {k: torch.tensor(v, requires_grad=True) if isinstance(v, np.ndarray) else v for k, v in parameters.items()}


def arrays_of(parameters: dict[str, Any]) -> dict[str, Any]:
    return {k: jnp.array(v) if isinstance(v, np.ndarray) else v for k, v in parameters.items()}


def agree(wanted: torch.Tensor, tensors: dict[str, Any], of: Any, given: dict[str, Any]) -> None:
    """Compares values, and the gradients by every parameter."""
    floats = {k: v for k, v in given.items() if isinstance(v, jax.Array)}

    @jax.jit
    def both(some: dict[str, Any]) -> tuple[Any, Any]:
        return of(given | some), jax.grad(lambda some: of(given | some).sum())(some)

    result, gradients = both(floats)
    np.testing.assert_allclose(result, wanted.detach().numpy(), rtol=1e-9, atol=1e-12)
    if wanted.requires_grad:
        wanted.sum().backward()
    for key in floats:
        if tensors[key].grad is None:  # the entropy of normal numbers doesn't depend on their means
            assert not gradients[key].any()
            continue
        np.testing.assert_allclose(gradients[key], tensors[key].grad.numpy(), rtol=1e-7, atol=1e-10, err_msg=key)


@pytest.mark.parametrize(("name", "parameters", "value"), CASES)
def test_densities(name: str, parameters: dict[str, Any], value: np.ndarray) -> None:
    tensors = tensors_of(parameters)
    wanted = getattr(torch.distributions, name)(**tensors).log_prob(torch.tensor(value))
    agree(wanted, tensors, lambda given: helper_class(name)(**given).log_prob(jnp.array(value)), arrays_of(parameters))


@pytest.mark.parametrize(("name", "parameters"), [case[:2] for case in CASES if case[0] not in WITHOUT_ENTROPY])
def test_entropies(name: str, parameters: dict[str, Any]) -> None:
    tensors = tensors_of(parameters)
    wanted = getattr(torch.distributions, name)(**tensors).entropy()
    agree(wanted, tensors, lambda given: helper_class(name)(**given).entropy(), arrays_of(parameters))


WITH_DIVERGENCE = [case[:2] for case in CASES if "divergence" in vars(helper_class(case[0])) or case[0] == "Chi2"]


@pytest.mark.parametrize(("name", "parameters"), WITH_DIVERGENCE)
def test_divergences(name: str, parameters: dict[str, Any]) -> None:
    moved = {k: v[..., ::-1] * 1.3 if k in ("loc", "logits", "low") else v for k, v in parameters.items()}
    moved = {
        k: v * 1.1 if k in ("scale", "rate", "concentration", "high", "scale_tril") else v for k, v in moved.items()
    }
    if name == "Uniform":
        moved = {"low": parameters["low"] - 1, "high": parameters["high"] + 1}
    if name == "Pareto":
        moved = {"scale": parameters["scale"] * 0.9, "alpha": parameters["alpha"] + 1}
    moved = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in moved.items()}
    tensors = tensors_of(parameters)
    made = getattr(torch.distributions, name)
    wanted = torch.distributions.kl_divergence(made(**tensors), made(**tensors_of(moved)))
    other = helper_class(name)(**arrays_of(moved))
    agree(wanted, tensors, lambda given: helper_class(name)(**given).kl_divergence(other), arrays_of(parameters))


ATTRIBUTES = ("mean", "variance", "stddev", "mode", "batch_shape", "event_shape", "probs", "logits", "total_count")


@pytest.mark.parametrize(("name", "parameters"), [case[:2] for case in CASES])
def test_attributes(name: str, parameters: dict[str, Any]) -> None:
    reference = getattr(torch.distributions, name)(**tensors_of(parameters))
    made, compared = helper_class(name)(**arrays_of(parameters)), 0
    for attribute in (*ATTRIBUTES, *parameters):
        if not hasattr(made, attribute):
            continue
        try:
            wanted = getattr(reference, attribute)
        except NotImplementedError:
            continue
        wanted = wanted.detach().numpy() if isinstance(wanted, torch.Tensor) else wanted
        np.testing.assert_allclose(getattr(made, attribute), wanted, rtol=1e-9, atol=1e-12, err_msg=attribute)
        compared += 1
    assert compared >= 2 + len(parameters)


@pytest.mark.parametrize(("name", "parameters"), {case[0]: case[:2] for case in CASES}.values())
def test_draws_have_the_distribution(name: str, parameters: dict[str, Any]) -> None:
    made = helper_class(name)(**arrays_of(parameters))
    reference = getattr(torch.distributions, name)(**tensors_of(parameters))
    torch.manual_seed(0)
    draws = np.asarray(jax.jit(lambda: made.sample((2000,), rngs=nnx.Rngs(0)))())
    torch_side = reference.sample((2000,)).numpy()
    assert draws.shape == torch_side.shape and draws.dtype == torch_side.dtype
    shares = (0.1, 0.5, 0.9)
    result, wanted = np.quantile(draws, shares, axis=0), np.quantile(torch_side, shares, axis=0)
    spread = np.abs(wanted[2] - wanted[0])
    if np.any(draws % 1):
        assert np.all(np.abs(result - wanted) < 0.4 * spread)
    else:
        assert np.all(np.abs(draws.mean(0) - torch_side.mean(0)) < 0.2 * np.maximum(torch_side.std(0), 0.1))
    assert made.extended_shape(()) == reference.sample().shape


OF_EACH_KIND = {"Normal", "Cauchy", "Gumbel", "Gamma", "MultivariateNormal", "RelaxedBernoulli"}
REPARAMETERIZED = [case[:2] for case in CASES if case[0] in OF_EACH_KIND]


@pytest.mark.parametrize(("name", "parameters"), REPARAMETERIZED)
def test_only_rsample_hands_gradients_on(name: str, parameters: dict[str, Any]) -> None:
    def total(given: dict[str, Any], method: str) -> jax.Array:
        return jnp.square(getattr(helper_class(name)(**given), method)(rngs=nnx.Rngs(0))).sum()

    given = arrays_of(parameters)
    gradients = {m: jax.jit(jax.grad(lambda g, m=m: total(g, m)))(given) for m in ("sample", "rsample")}
    assert not any(g.any() for g in gradients["sample"].values())
    assert any(g.any() for g in gradients["rsample"].values())


def test_independent_events() -> None:
    loc, scale, value = array(2, 4, 3), array(2, 4, 3, low=0.3, high=2.0), array(2, 4, 3, seed=2)
    base = torch.distributions.Normal(torch.tensor(loc), torch.tensor(scale))
    reference = torch.distributions.Independent(base, 2)
    other = torch.distributions.Independent(torch.distributions.Normal(torch.zeros(2, 4, 3), 1.0), 2)
    made = helper_class("Independent")(helper_class("Normal")(jnp.array(loc), jnp.array(scale)), 2)
    standard = helper_class("Independent")(helper_class("Normal")(jnp.zeros((2, 4, 3)), 1.0), 2)
    assert (made.batch_shape, made.event_shape) == (reference.batch_shape, reference.event_shape)
    np.testing.assert_allclose(made.log_prob(jnp.array(value)), reference.log_prob(torch.tensor(value)), rtol=1e-9)
    np.testing.assert_allclose(made.entropy(), reference.entropy(), rtol=1e-9)
    wanted = torch.distributions.kl_divergence(reference, other)
    np.testing.assert_allclose(made.kl_divergence(standard), wanted, rtol=1e-9)
    np.testing.assert_allclose(made.stddev, reference.stddev, rtol=1e-9)
    assert made.rsample((5,), rngs=nnx.Rngs(0)).shape == (5, 2, 4, 3)


def test_another_class_has_no_divergence() -> None:
    def events(name: str) -> Any:
        return helper_class("Independent")(helper_class(name)(jnp.zeros(3), 1.0), 1)

    with pytest.raises(NotImplementedError, match="Normal from Cauchy"):
        helper_class("Normal")(0.0, 1.0).kl_divergence(helper_class("Cauchy")(0.0, 1.0))
    with pytest.raises(NotImplementedError, match="Normal from Cauchy"):
        events("Normal").kl_divergence(events("Cauchy"))


TRANSFORMS: list[tuple[str, dict[str, Any], np.ndarray]] = [
    ("ExpTransform", {}, REAL),
    ("TanhTransform", {}, REAL),
    ("SigmoidTransform", {}, REAL),
    ("SoftplusTransform", {}, REAL),
    ("AffineTransform", {"loc": 0.5, "scale": -2.0}, REAL),
    ("AffineTransform", {"loc": OTHER, "scale": OTHER}, REAL),
    ("PowerTransform", {"exponent": OTHER}, POSITIVE),
]


@pytest.mark.parametrize(("name", "parameters", "value"), TRANSFORMS)
def test_transforms(name: str, parameters: dict[str, Any], value: np.ndarray) -> None:
    reference, made = (
        getattr(torch.distributions, name)(**tensors_of(parameters)),
        helper_class(name)(**arrays_of(parameters)),
    )
    x, given = torch.tensor(value), jnp.array(value)
    y, result = reference(x), made(given)
    pairs = [
        (result, y),
        (made.inv(result), reference.inv(y)),
        (made.log_abs_det_jacobian(given, result), reference.log_abs_det_jacobian(x, y)),
        (made.inv.log_abs_det_jacobian(result, given), reference.inv.log_abs_det_jacobian(y, x)),
        (made.inv.inv(given), y),
    ]
    for one, wanted in pairs:
        np.testing.assert_allclose(one, wanted.detach().numpy(), rtol=1e-9, atol=1e-12)


def test_what_was_transformed_is_remembered() -> None:
    x = jnp.array([20.0, 0.5])
    kept, plain = helper_class("TanhTransform")(cache_size=1), helper_class("TanhTransform")()
    assert kept.inv(kept(x)) is x
    assert not np.isfinite(plain.inv(plain(x))).all()
    assert np.isfinite(jax.jit(lambda x: kept.inv(kept(x)))(x)).all()


@pytest.mark.parametrize("several", [False, True])
def test_transformed_distributions(several: bool) -> None:
    def make(library: Any, loc: Any, scale: Any, half: Any) -> Any:
        parts = [library("AffineTransform")(half, 2.0), library("TanhTransform")()]
        base = library("Independent")(library("Normal")(loc, scale), 1)
        return library("TransformedDistribution")(base, library("ComposeTransform")(parts) if several else parts)

    def torch_class(name: str) -> Any:
        return getattr(torch.distributions, name)

    loc, scale, value = array(4, 3), array(4, 3, low=0.3, high=2.0), array(4, 3, low=-0.9, high=0.9)
    tensors = {"loc": torch.tensor(loc, requires_grad=True), "scale": torch.tensor(scale, requires_grad=True)}
    half = torch.tensor(0.5, dtype=torch.float64)
    wanted = make(torch_class, **tensors, half=half).log_prob(torch.tensor(value))
    given = {"loc": jnp.array(loc), "scale": jnp.array(scale)}
    agree(wanted, tensors, lambda some: make(helper_class, **some, half=0.5).log_prob(jnp.array(value)), given)
    made = make(helper_class, **given, half=0.5)
    draws = made.rsample((7,), rngs=nnx.Rngs(0))
    assert draws.shape == (7, 4, 3) and float(jnp.abs(draws).max()) <= 1
    assert (made.batch_shape, made.event_shape) == ((4,), (3,))


def test_a_transform_that_stretches_its_base_is_told_so() -> None:
    made = helper_class("TransformedDistribution")(
        helper_class("Normal")(0.0, 1.0), helper_class("AffineTransform")(jnp.zeros(3), 1.0)
    )
    with pytest.raises(ValueError, match="base distribution its shape"):
        made.sample(rngs=nnx.Rngs(0))


@pytest.mark.parametrize("events", [0, 1])
def test_mixtures(events: int) -> None:
    loc, scale, logits = array(4, 5, 3), array(4, 5, 3, low=0.3, high=2.0), array(4, 5)
    loc, scale = (loc, scale) if events else (loc[..., 0].copy(), scale[..., 0].copy())
    value = array(4, 3) if events else array(4)

    def make(library: Any, loc: Any, scale: Any, logits: Any) -> Any:
        component = library("Normal")(loc, scale)
        component = library("Independent")(component, 1) if events else component
        return library("MixtureSameFamily")(library("Categorical")(logits=logits), component)

    def torch_class(name: str) -> Any:
        return getattr(torch.distributions, name)

    parameters = {"loc": loc, "scale": scale, "logits": logits}
    tensors, given = tensors_of(parameters), arrays_of(parameters)
    reference, made = make(torch_class, **tensors), make(helper_class, **given)
    agree(
        reference.log_prob(torch.tensor(value)),
        tensors,
        lambda some: make(helper_class, **some).log_prob(jnp.array(value)),
        given,
    )
    for attribute in ("mean", "variance", "stddev"):
        wanted = getattr(reference, attribute).detach().numpy()
        np.testing.assert_allclose(getattr(made, attribute), wanted, rtol=1e-9, err_msg=attribute)
    torch.manual_seed(0)
    draws, others = np.asarray(made.sample((4000,), rngs=nnx.Rngs(0))), reference.sample((4000,)).numpy()
    assert draws.shape == others.shape
    assert np.all(np.abs(draws.mean(0) - others.mean(0)) < 0.1 * others.std(0))
