"""Initialisers against torch.nn.init: bounds, spread and exact patterns, for Flax's layouts and PyTorch's."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp.rules.helpers import init

KERNEL = (3, 2, 20, 300)  # of a convolution in Flax's layout: 20 channels in each group, 300 out
WEIGHT = (300, 20, 3, 2)  # the same in PyTorch's
scaling = nnx.initializers.variance_scaling

# torch's initialiser of WEIGHT, the JAX one of KERNEL, and the JAX one of WEIGHT itself
CASES: dict[str, tuple[Callable[[torch.Tensor], Any], Any, Any]] = {
    "default of a convolution": (
        lambda w: torch.nn.init.kaiming_uniform_(w, a=5**0.5),
        init.uniform_fan_in, scaling(1 / 3, "fan_in", "uniform", in_axis=1, out_axis=0),
    ),
    "kaiming uniform": (
        lambda w: torch.nn.init.kaiming_uniform_(w, 0.3, "fan_out"),
        init.kaiming_uniform(0.3, "fan_out"), init.kaiming_uniform(0.3, "fan_out", in_axis=1, out_axis=0),
    ),
    "kaiming normal": (
        lambda w: torch.nn.init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu"),
        init.kaiming_normal(mode="fan_out", nonlinearity="relu"),
        init.kaiming_normal(mode="fan_out", nonlinearity="relu", in_axis=1, out_axis=0),
    ),
    "xavier uniform": (
        lambda w: torch.nn.init.xavier_uniform_(w, 1.5),
        scaling(1.5**2, "fan_avg", "uniform"), scaling(1.5**2, "fan_avg", "uniform", in_axis=1, out_axis=0),
    ),
    "xavier normal": (
        lambda w: torch.nn.init.xavier_normal_(w, 1.5),
        scaling(1.5**2, "fan_avg", "normal"), scaling(1.5**2, "fan_avg", "normal", in_axis=1, out_axis=0),
    ),
    "truncated normal, bounds far out": (
        lambda w: torch.nn.init.trunc_normal_(w, std=0.02), init.trunc_normal(std=0.02), init.trunc_normal(std=0.02),
    ),
    "truncated normal, bounds near": (
        lambda w: torch.nn.init.trunc_normal_(w, 0.3, 1.0, -0.5, 0.9),
        init.trunc_normal(0.3, 1.0, -0.5, 0.9), init.trunc_normal(0.3, 1.0, -0.5, 0.9),
    ),
    "bias": (
        lambda w: torch.nn.init.uniform_(w, -(120**-0.5), 120**-0.5), init.uniform_bias(120), init.uniform_bias(120),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_initializer_has_the_distribution_of_torch(case: str) -> None:
    fill, for_kernel, for_weight = CASES[case]
    torch.manual_seed(0)
    want = fill(torch.empty(WEIGHT)).numpy()
    for initializer, shape in [(for_kernel, KERNEL), (for_weight, WEIGHT)]:
        got = np.asarray(initializer(jax.random.key(0), shape, jnp.float32))
        assert got.shape == shape
        assert got.dtype == np.float32
        allowed = 5 * want.std() * (2 / want.size) ** 0.5
        assert abs(got.mean() - want.mean()) < allowed
        assert abs(got.std() - want.std()) < allowed
        for quantile in (0.001, 0.05, 0.25, 0.75, 0.95, 0.999):
            assert abs(np.quantile(got, quantile) - np.quantile(want, quantile)) < 0.15 * want.std()


@pytest.mark.parametrize("wide", [True, False])
def test_orthogonal_of_jax_is_that_of_torch_in_both_layouts(wide: bool) -> None:
    out, features_in = (4, 3) if wide else (12, 2)
    weight = torch.nn.init.orthogonal_(torch.empty(out, features_in, 2, 1), 3.0).reshape(out, -1).numpy()
    kernel = nnx.initializers.orthogonal(3.0)(jax.random.key(0), (2, 1, features_in, out))
    jax_side = nnx.initializers.orthogonal(3.0, column_axis=0)(jax.random.key(0), (out, features_in, 2, 1))
    for matrix in (weight, np.asarray(kernel).reshape(-1, out).T, np.asarray(jax_side).reshape(out, -1)):
        gram = matrix @ matrix.T if wide else matrix.T @ matrix
        np.testing.assert_allclose(gram, 9 * np.eye(len(gram)), atol=1e-5)


@pytest.mark.parametrize(("out", "features_in", "groups"), [(6, 4, 1), (6, 2, 2), (3, 5, 1), (4, 2, 2)])
def test_dirac_is_that_of_torch(out: int, features_in: int, groups: int) -> None:
    for spatial in [(3,), (3, 4), (1, 2, 5)]:
        want = torch.nn.init.dirac_(torch.empty(out, features_in, *spatial), groups).numpy()
        got = init.dirac(groups)(jax.random.key(0), (*spatial, features_in, out))
        np.testing.assert_array_equal(np.moveaxis(np.asarray(got), (-1, -2), (0, 1)), want)
        own = init.dirac(groups, in_axis=1, out_axis=0)(jax.random.key(0), (out, features_in, *spatial))
        np.testing.assert_array_equal(own, want)


def test_identity_matrix_is_that_of_torch() -> None:
    got = init.identity_matrix(jax.random.key(0), (3, 5), jnp.float32)
    np.testing.assert_array_equal(got, torch.nn.init.eye_(torch.empty(3, 5)))


def test_gains_are_those_of_torch() -> None:
    names = ["linear", "conv2d", "conv_transpose1d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"]
    for name in names:
        assert init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))
    assert init.calculate_gain("leaky_relu", 0.2) == pytest.approx(torch.nn.init.calculate_gain("leaky_relu", 0.2))
    with pytest.raises(ValueError, match="Unsupported nonlinearity gelu"):
        init.calculate_gain("gelu")


@pytest.mark.parametrize("shape", [(4, 3), (6, 2, 3), (6, 2, 3, 5)])
def test_fans_are_those_that_pytorch_counts(shape: tuple[int, ...]) -> None:
    assert init.fans(jnp.zeros(shape)) == torch.nn.init._calculate_fan_in_and_fan_out(torch.zeros(shape))
