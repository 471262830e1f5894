"""Dropout helpers: which values share a fate, how often they are dropped, what is kept; against torch's own forms."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flax import nnx

from t2j_lsp.rules.helpers import dropout
from tests.helpers.compare import array

SHAPES = {
    "Dropout": (400, 25), "Dropout1d": (100, 20, 5), "Dropout2d": (100, 20, 3, 4), "Dropout3d": (100, 20, 2, 3, 2),
    "Dropout2d of three axes": (100, 20, 5), "Dropout1d without batch": (2000, 5),
    "Dropout3d without batch": (2000, 2, 3, 2),
}  # fmt: skip


def fates(mask: np.ndarray) -> tuple[int, ...]:
    """The axes along which kept and dropped values mix."""
    return tuple(axis for axis in range(mask.ndim) if (mask != mask.take([0], axis)).any())


@pytest.mark.filterwarnings("ignore:dropout2d")
@pytest.mark.parametrize("case", SHAPES)
def test_layer_drops_the_same_units_as_torch_and_scales_the_rest(case: str) -> None:
    name, shape = case.split()[0], SHAPES[case]
    torch.manual_seed(0)
    want = getattr(torch.nn, name)(0.3)(torch.ones(shape)).numpy()
    module = getattr(dropout, name)(0.3, rngs=nnx.Rngs(0))
    got = np.asarray(module(jnp.ones(shape)))
    assert fates(got == 0) == fates(want == 0)
    assert abs((got == 0).mean() - 0.3) < 0.05
    np.testing.assert_allclose(got[got != 0], 1 / 0.7)
    assert isinstance(module, nnx.Dropout)
    module.eval()
    np.testing.assert_array_equal(module(jnp.ones(shape)), 1.0)


def test_every_call_draws_a_new_mask_also_under_jit() -> None:
    module = dropout.Dropout(rngs=nnx.Rngs(0))
    call = nnx.jit(lambda m, x: m(x))
    x = jnp.ones(100)
    first, second, third = module(x), call(module, x), call(module, x)
    assert not np.array_equal(first, second)
    assert not np.array_equal(second, third)


@pytest.mark.parametrize("name", ["dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"])
def test_function_is_the_identity_when_deterministic_or_at_rate_0(name: str) -> None:
    function: Callable[..., jax.Array] = getattr(dropout, name)
    x = jnp.asarray(array(2, 3, 2, 2, 2))
    np.testing.assert_array_equal(function(x, 0.9, deterministic=True, rngs=None), x)
    np.testing.assert_array_equal(function(x, 0.0, deterministic=False, rngs=nnx.Rngs(0)), x)


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout"])
def test_rate_1_gives_zeros_with_gradient_0(name: str) -> None:
    function: Callable[..., jax.Array] = getattr(dropout, name)
    x = torch.ones(3, requires_grad=True)
    want = getattr(F, name)(x, 1.0, training=True)
    want.sum().backward()
    value, grad = jax.value_and_grad(lambda x: function(x, 1.0, deterministic=False, rngs=nnx.Rngs(0)).sum())(
        jnp.ones(3)
    )
    assert value == want.sum().item()
    np.testing.assert_array_equal(grad, x.grad)


def test_gradient_is_that_of_the_mask() -> None:
    x, mask = jnp.asarray(array(50)), dropout.dropout(jnp.ones(50), 0.4, deterministic=False, rngs=nnx.Rngs(3))
    grad = jax.grad(lambda x: dropout.dropout(x, 0.4, deterministic=False, rngs=nnx.Rngs(3)).sum())(x)
    np.testing.assert_allclose(grad, mask)


def test_alpha_dropout_has_torch_values_and_keeps_mean_and_variance() -> None:
    torch.manual_seed(0)
    want = np.unique(F.alpha_dropout(torch.ones(200).double(), 0.3, training=True))
    got = dropout.alpha_dropout(jnp.ones(200), 0.3, deterministic=False, rngs=nnx.Rngs(0))
    np.testing.assert_allclose(np.unique(got), want, rtol=1e-12)
    x = jnp.asarray(np.random.default_rng(0).normal(size=100_000))
    y = dropout.AlphaDropout(0.3, rngs=nnx.Rngs(0))(x)
    assert abs(float(y.mean())) < 0.02
    assert abs(float(y.std()) - 1) < 0.02
