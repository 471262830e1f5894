"""Distributions beside PyTorch's: densities, entropies, their gradients, and the moments of draws."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp.rules.helpers import distributions

from .compare import array

PROBS = array(4, 3, low=0.1, high=2.0)
LOGITS = array(4, 3)
CASES: list[tuple[str, dict[str, np.ndarray], np.ndarray]] = [
    ("Normal", {"loc": array(4, 3), "scale": array(3, low=0.3, high=2.0)}, array(4, 3, seed=1)),
    ("Categorical", {"probs": PROBS}, np.array([0, 2, 1, 1])),
    ("Categorical", {"logits": LOGITS}, np.array([[0, 2, 1, 1], [2, 2, 2, 0]])),
    ("Bernoulli", {"probs": array(4, 3, low=0.01, high=0.99)}, np.round(array(4, 3, low=0.0, high=1.0))),
    ("Bernoulli", {"logits": LOGITS}, np.round(array(4, 3, low=0.0, high=1.0))),
]


@pytest.mark.parametrize(("name", "parameters", "value"), CASES)
@pytest.mark.parametrize("method", ["log_prob", "entropy"])
def test_densities_and_entropies(name: str, parameters: dict[str, np.ndarray], value: np.ndarray, method: str) -> None:
    def of(module: Any, given: Any, at: Any) -> Any:
        made = getattr(module, name)(**given)
        return made.log_prob(at) if method == "log_prob" else made.entropy()

    tensors = {key: torch.tensor(one, requires_grad=True) for key, one in parameters.items()}
    wanted = of(torch.distributions, tensors, torch.tensor(value))
    wanted.sum().backward()
    given = {key: jnp.array(one) for key, one in parameters.items()}
    found = of(distributions, given, jnp.array(value))
    np.testing.assert_allclose(found, wanted.detach().numpy(), rtol=1e-9, atol=1e-12)
    gradients = jax.grad(lambda given: of(distributions, given, jnp.array(value)).sum())(given)
    for key, tensor in tensors.items():
        if tensor.grad is None:  # the entropy of normal numbers doesn't depend on their means
            assert not gradients[key].any()
            continue
        np.testing.assert_allclose(gradients[key], tensor.grad.numpy(), rtol=1e-7, atol=1e-10, err_msg=key)


@pytest.mark.parametrize(("name", "parameters", "value"), CASES)
def test_draws_have_the_distribution(name: str, parameters: dict[str, np.ndarray], value: np.ndarray) -> None:
    made = getattr(distributions, name)(**{key: jnp.array(one) for key, one in parameters.items()})
    reference = getattr(torch.distributions, name)(**{key: torch.tensor(one) for key, one in parameters.items()})
    draws, theirs = made.sample((4000,), rngs=nnx.Rngs(0)), reference.sample((4000,)).numpy()
    assert draws.shape == theirs.shape and draws.dtype.kind == theirs.dtype.kind
    np.testing.assert_allclose(draws.mean(0), theirs.mean(0), atol=0.2)
    assert made.sample(rngs=nnx.Rngs(1)).shape == reference.sample().shape


def test_only_rsample_hands_gradients_on() -> None:
    def total(scale: jax.Array, method: str) -> jax.Array:
        return getattr(distributions.Normal(jnp.zeros(3), scale), method)(rngs=nnx.Rngs(0)).sum()

    assert jax.grad(total)(jnp.ones(3), "sample").tolist() == [0, 0, 0]
    assert all(jax.grad(total)(jnp.ones(3), "rsample") != 0)
