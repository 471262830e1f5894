"""Elementwise math, comparisons and special functions: what they become, and what is left alone."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
import torch

from t2j_lsp import convert

from .conversion import agrees, left_alone, refused

ARITHMETIC = [
    ("torch.add(x, y)", "x + y", "xy"),
    ("x.add(y, alpha=2)", "x + 2 * y", "xy"),
    ("torch.sub(x, y - 1, alpha=3)", "x - 3 * (y - 1)", "xy"),
    ("torch.rsub(x, y)", "y - x", "xy"),
    ("(x + y).mul(z)", "(x + y) * z", "xyz"),
    ("torch.div(x, y)", "x / y", "xy"),
    ("torch.div(x, y, rounding_mode='floor')", "x // y", "xy"),
    ("n.div(2, rounding_mode='trunc')", "trunc_divide(n, 2)", "n"),
    ("(x * 1.0).div(2.5, rounding_mode='trunc')", "trunc_divide(x * 1.0, 2.5)", "x"),
    ("x.pow(2)", "x**2", "x"),
    ("(-x).pow(2)", "(-x)**2", "x"),
    ("torch.pow(2, x)", "2**x", "x"),
    ("x.neg().exp()", "jnp.exp(-x)", "x"),
    ("x.abs()", "absolute(x)", "x"),
    ("n.abs()", "absolute(n)", "n"),
    ("x.square().sum()", "jnp.square(x).sum()", "x"),
    ("p.rsqrt()", "jax.lax.rsqrt(p)", "p"),
    ("p.reciprocal()", "1 / p", "p"),
    ("torch.remainder(x, 1.5)", "x % 1.5", "x"),
    ("torch.fmod(x, 1.5)", "jnp.fmod(x, 1.5)", "x"),
    ("torch.lerp(x, y, 0.3)", "x + 0.3 * (y - x)", "xy"),
    ("torch.addcmul(x, y, z, value=2)", "x + 2 * y * z", "xyz"),
    ("torch.addcdiv(x, y, z)", "x + y / z", "xyz"),
    ("torch.add(x, y, alpha=-0.5)", "x - 0.5 * y", "xy"),
    ("x.sub(y, alpha=-(2 + 1))", "x + (2 + 1) * y", "xy"),
    ("x.add(-0.5, y)", "x - 0.5 * y", "xy"),
    ("torch.add(x, 2, y)", "x + 2 * y", "xy"),
    ("torch.sub(x, 2, y)", "x - 2 * y", "xy"),
    ("torch.addcmul(x, 0.5, y, z)", "x + 0.5 * y * z", "xyz"),
    ("x.addcdiv(-2, y, z)", "x - 2 * y / z", "xyz"),
    ("torch.round(x, decimals=1)", "jnp.round(x, decimals=1)", "x"),
    ("torch.arctan(x)", "jnp.arctan(x)", "x"),
    ("torch.maximum(x, y)", "jnp.maximum(x, y)", "xy"),
]

BOUNDS = [
    ("x.clamp(0, 1)", "clamp(x, 0, 1)", "x"),
    ("torch.clamp(x, min=0)", "clamp(x, min=0)", "x"),
    ("x.clamp(max=1.0)", "clamp(x, max=1.0)", "x"),
    ("x.clip(-1, 1)", "clamp(x, -1, 1)", "x"),
    ("x.clamp_min(y)", "clamp_to(x, min=y)", "xy"),
    ("x.clamp(y, y / 0 * 0)", "clamp_to(x, y, y / 0 * 0)", "xy"),
    ("x.clamp(max=x.argmax(1)[:, None])", "clamp(x, max=x.argmax(axis=1)[:, None])", "x"),
    ("x.argmax(1).clamp(0, 2)", "x.argmax(axis=1).clip(0, 2)", "x"),
    ("torch.clamp(x.argmax(1), max=2)", "jnp.clip(x.argmax(axis=1), max=2)", "x"),
]

POWERS = [
    ("torch.pow(p, p)", "power(p, p)", "p"),
    ("p ** (p - 1)", "power(p, p - 1)", "p"),
    ("(x + y).pow(2)", "(x + y)**2", "xy"),
    ("2 ** x", "2 ** x", "x"),
    ("x ** x.argmax(1, keepdim=True)", "x ** x.argmax(axis=1, keepdims=True)", "x"),
    ("torch.atan2(x, y)", "arctan2(x, y)", "xy"),
    ("x.fmax(y)", "fmax(x, y)", "xy"),
]

LOGIC = [
    ("x.eq(y)", "x == y", "xy"),
    ("torch.ne(n, 0)", "n != 0", "n"),
    ("x.gt(0).logical_and(y.le(1))", "jnp.logical_and(x > 0, y <= 1)", "xy"),
    ("torch.logical_not(m)", "jnp.logical_not(m)", "m"),
    ("torch.bitwise_not(m)", "~m", "m"),
    ("torch.bitwise_and(n, 3)", "n & 3", "n"),
    ("torch.where(m, x, 0.0)", "jnp.where(m, x, 0.0)", "mx"),
    ("x.where(m, y)", "jnp.where(m, x, y)", "xmy"),
    ("torch.isfinite(x).all()", "jnp.isfinite(x).all()", "x"),
    ("torch.isin(i, j)", "jnp.isin(i, j)", "ij"),
]

SPECIAL = [
    ("torch.erf(x)", "jax.scipy.special.erf(x)", "x"),
    ("x.lgamma()", "jax.scipy.special.gammaln(x)", "x"),
    ("torch.logit(p)", "jax.scipy.special.logit(p)", "p"),
    ("torch.logit(p, eps=0.2)", "jax.scipy.special.logit(clamp(p, 0.2, 1 - 0.2))", "p"),
    ("torch.special.expit(x)", "jax.nn.sigmoid(x)", "x"),
    ("torch.xlogy(x, p[0, 0])", "xlogy(x, p[0, 0])", "xp"),
]


@pytest.mark.filterwarnings("ignore:This overload of")
@pytest.mark.parametrize(("torch_code", "jax_code", "inputs"), [*ARITHMETIC, *BOUNDS, *POWERS, *LOGIC, *SPECIAL])
def test_becomes(torch_code: str, jax_code: str, inputs: str) -> None:
    agrees(torch_code, jax_code, inputs)


IN_PLACE = [
    ("x = x * 1; x.add_(y, alpha=2); x", "x = x * 1; x = x + 2 * y; x", "xy"),
    ("x = x * 1; x.mul_(2).clamp_(0, 1); x", "x = x * 1; x = x * 2; x = clamp(x, 0, 1); x", "x"),
]


@pytest.mark.parametrize(("torch_code", "jax_code", "inputs"), IN_PLACE)
def test_in_place_spellings_bind_the_name_again(torch_code: str, jax_code: str, inputs: str) -> None:
    agrees(torch_code, jax_code, inputs)


ONCE = [
    ("torch.lerp(x.exp(), y, 0.3)", "x2 = jnp.exp(x); x2 + 0.3 * (y - x2)", "xy"),
    ("torch.frac(x + y)", "x2 = x + y; x2 - jnp.trunc(x2)", "xy"),
]


@pytest.mark.parametrize(("torch_code", "jax_code", "inputs"), ONCE)
def test_an_argument_used_twice_is_computed_once(torch_code: str, jax_code: str, inputs: str) -> None:
    agrees(torch_code, jax_code, inputs)


NOT_TORCH = [
    "def f(numbers):\n    numbers.add(3)\n    return numbers",
    "import pandas as pd\n\n\ndef f(frame):\n    return frame.abs().round(2)",
    "def f(names: set[str]):\n    names.add('x')\n    return names.pop()",
    "def f(a, b):\n    return np.add(a, b)",
    "def f(value):\n    return abs(value) + round(value, 2) + pow(value, 2)",
    "def f(text: str):\n    return text.where('x')",
    "class C:\n    def clamp(self, low):\n        return max(low, 0)\n\n\ndef f(c: C):\n    return c.clamp(1)",
    "import pandas as pd\n\n\ndef f(interval):\n    return interval.eq(2)",
    "from math import exp, log\n\n\ndef f(v):\n    return exp(v) + log(v)",
    "def f(d: dict):\n    return d.where",
]


@pytest.mark.parametrize("source", NOT_TORCH)
def test_code_that_is_not_torchs_stays(source: str) -> None:
    left_alone(source)


REFUSED = [
    ("torch.div(x, y, rounding_mode=mode)", "rounding_mode must be spelled out", "xy"),
    ("torch.special.multi_dim_common(x)", "jax.scipy.special has no such function", "x"),
]


@pytest.mark.parametrize(("torch_code", "reason", "inputs"), REFUSED)
def test_is_refused(torch_code: str, reason: str, inputs: str) -> None:
    refused(torch_code, reason, inputs)


def test_bounds_that_may_be_arrays_and_equal_have_pytorchs_gradient() -> None:
    code = convert("import torch\n\n\ndef f(x, low, high):\n    return torch.clamp(x, low, high)\n").code
    space: dict[str, Any] = {}
    exec(code, space)
    x, low, high = jnp.array([-1.0, 0.5, 3.0]), jnp.array([0.0, 0.0, 2.0]), jnp.array([0.0, 1.0, 2.0])
    assert space["f"](x, 0.0, 1.0).tolist() == [0.0, 0.5, 1.0]
    for number, given in enumerate((x, low, high)):
        sides = [torch.tensor(one.tolist(), requires_grad=True) for one in (x, low, high)]
        torch.clamp(*sides).sum().backward()
        grad = jax.grad(lambda *args: space["f"](*args).sum(), argnums=number)(x, low, high)
        assert grad.tolist() == sides[number].grad.tolist() and given.shape == grad.shape  # type: ignore[union-attr]
