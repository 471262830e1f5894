"""Activation helpers against torch, at every kink and far out: values and gradients."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flax import nnx

from t2j_lsp.rules.helpers import activation, activation_modules
from tests.helpers.compare import array, same_function, same_module

# Zeros of both signs, every bound that one of the functions has, values between, and values where exp overflows.
KINKS = np.array([
    [-800, -7, -3.5, -3, -1, -0.7, -0.5, -0.25],
    [-0.0, 0.0, 0.25, 0.5, 0.9, 1, 3, 3.5],
    [6, 7, 19, 20, 21, 40, 90, 800],
])  # fmt: skip
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "leaky_relu": (activation.leaky_relu, F.leaky_relu),
    "leaky_relu of another slope": (lambda x: activation.leaky_relu(x, -0.3), lambda x: F.leaky_relu(x, -0.3)),
    "hardtanh": (activation.hardtanh, F.hardtanh),
    "hardtanh of other bounds": (lambda x: activation.hardtanh(x, -3, 0.5), lambda x: F.hardtanh(x, -3, 0.5)),
    "hardshrink": (activation.hardshrink, F.hardshrink),
    "softshrink": (lambda x: activation.softshrink(x, 1.0), lambda x: F.softshrink(x, 1.0)),
    "softplus": (activation.softplus, F.softplus),
    "softplus with settings": (lambda x: activation.softplus(x, 2.0, 3.25), lambda x: F.softplus(x, 2.0, 3.25)),
    "threshold": (lambda x: activation.threshold(x, 0.5, 20.0), lambda x: F.threshold(x, 0.5, 20.0)),
    "rrelu": (activation.rrelu, F.rrelu),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_function_agrees_with_torch_at_its_kinks(case: str) -> None:
    function, reference = FUNCTIONS[case]
    same_function(function, reference, KINKS, jit=True)


def test_function_runs_eagerly() -> None:
    same_function(activation.leaky_relu, F.leaky_relu, KINKS)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2, 2), (3,), ()])
def test_prelu_slopes_belong_to_axis_1(shape: tuple[int, ...]) -> None:
    x = array(*shape)
    if x.size > 1:
        x[..., 0] = 0.0
    channels = shape[1] if len(shape) > 1 else 1
    same_function(activation.prelu, F.prelu, x, array(channels), jit=True)
    same_function(activation.prelu, F.prelu, x, array(1), jit=True)


def test_threshold_keeps_nan() -> None:
    assert bool(jnp.isnan(activation.threshold(jnp.array(jnp.nan), 0.5, 20.0)))


def test_softmax_without_dim_takes_the_axis_that_torch_takes() -> None:
    for shape in [(4,), (3, 4), (2, 3, 4), (2, 3, 4, 2)]:
        x = array(*shape)
        with pytest.warns(UserWarning, match="Implicit dimension choice"):
            want = F.softmax(torch.from_numpy(x))
        axis = activation.implicit_softmax_axis(x.ndim)
        np.testing.assert_allclose(jax.nn.softmax(jnp.asarray(x), axis), want, atol=1e-12)


MODULES: dict[str, tuple[Any, ...]] = {
    "ReLU": (), "ReLU6": (), "SiLU": (), "Mish": (), "Sigmoid": (), "Tanh": (), "LogSigmoid": (), "Hardswish": (),
    "Softsign": (), "Tanhshrink": (), "SELU": (), "GELU": (), "LeakyReLU": (0.2,), "ELU": (1.5,),
    "CELU": (2.0,), "Hardtanh": (-3, 0.5), "Hardshrink": (1.0,), "Softshrink": (0.25,), "Softplus": (2.0, 14.0),
    "Threshold": (0.5, 3.0), "GLU": (), "Softmax": (-2,), "LogSoftmax": (0,), "Softmin": (1,), "PReLU": (8, 0.1),
    "Hardsigmoid": (),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_module_agrees_with_torch_at_its_kinks(name: str) -> None:
    arguments = MODULES[name]
    module = getattr(activation_modules, name)(*arguments, rngs=nnx.Rngs(0))
    # torch's backward of hardsigmoid has 1 / 6 in float32, also for float64
    tolerance = 1e-7 if name == "Hardsigmoid" else 1e-11
    same_module(module, getattr(torch.nn, name)(*arguments), KINKS, jit=True, tolerance=tolerance)


def test_modules_with_other_settings_agree_with_torch() -> None:
    x = array(2, 4, 3, 2)
    same_module(activation_modules.GELU("tanh"), torch.nn.GELU("tanh"), KINKS, jit=True)
    same_module(activation_modules.GLU(1), torch.nn.GLU(1), x)
    same_module(activation_modules.Softmax2d(), torch.nn.Softmax2d(), x)
    same_module(activation_modules.Softmax2d(), torch.nn.Softmax2d(), x[0])
    same_module(activation_modules.PReLU(), torch.nn.PReLU(), x)
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        same_module(activation_modules.Softmax(), torch.nn.Softmax(), x)
    same_module(activation_modules.ReLU(inplace=True), torch.nn.ReLU(), KINKS)
    rngs = nnx.Rngs(0)
    same_module(activation_modules.RReLU(rngs=rngs), torch.nn.RReLU(), KINKS, train=False)


def test_fresh_prelu_has_torch_slopes() -> None:
    module = activation_modules.PReLU(3)
    np.testing.assert_array_equal(module.weight[...], torch.nn.PReLU(3).weight.detach())
    assert module.weight.dtype == jnp.float32


def test_random_leaky_relu_draws_a_slope_for_every_negative_value() -> None:
    module = activation_modules.RReLU(0.2, 0.4, rngs=nnx.Rngs(0))
    x = jnp.where(jnp.arange(10_000) % 2 == 0, -1.0, 2.0)
    y, again = module(x), nnx.jit(lambda m, x: m(x))(module, x)
    slopes = -y[::2]
    assert bool((y[1::2] == 2.0).all())
    assert 0.2 <= float(slopes.min()) < 0.201
    assert 0.399 < float(slopes.max()) < 0.4
    assert abs(float(slopes.mean()) - 0.3) < 0.005
    assert not bool((y == again).all())
