"""What is overwritten without gradient keeps the gradient of what it was, where something differentiates it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp import convert
from t2j_lsp.weights import load_torch_state

from .convert import body
from .side_by_side import randomized, run_jax, run_torch, sides
from .test_regressions import equal

NET = """
import torch
from torch import nn


class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.head = nn.Linear(5, 4), nn.Linear(5, 4)
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x):
        y = self.fc(x)
        {}
        return self.head(x) * y * self.weight
"""

NO_GRAD = "with torch.no_grad():\n            "
FRESH = [
    NO_GRAD + "y: torch.Tensor = y * 2",
    NO_GRAD + "y, z = y * 2, y",
    NO_GRAD + "if (y := y * 2).ndim == 2: pass",
    NO_GRAD + "z = [y * 2, y]\n        y = z[0]",
    NO_GRAD + "z, w = y, y * 2\n        y = z + w",
    NO_GRAD + "z = w = y\n            v = y * 2\n        y = z * v + w",
    NO_GRAD + "z: torch.Tensor = y\n            y = y * 2\n        y = z * y",
    NO_GRAD + "z, y = y, y * 2\n        y = z * y",
    NO_GRAD + "z = y\n            if x.ndim == 2:\n                z = y * 2\n        y = z + y",
    NO_GRAD + "z = y if self.training else y * 2\n        y = z + y",
    NO_GRAD + "z = [y, y * 2]\n        y = z[0] * z[1]",
    NO_GRAD + "z = {'a': y, 'b': y * 2, **{'c': y * 3}}\n        y = z['a'] * z['b']",
    NO_GRAD + "z, w = self.weight, y * self.weight\n        y = z * w + y",
    "z = []\n        " + NO_GRAD + "z.append(y * 2)\n            z.append(y)\n        y = z[0] * z[1]",
    "z = {}\n        " + NO_GRAD + "z['a'] = y * 2\n            z['b'] = y\n        y = z['a'] * z['b']",
    "z = {}\n        " + NO_GRAD + "z.update(a=y * 2, b=y)\n        y = z['a'] * z['b']",
    NO_GRAD + "self.kept = y * 2\n        y = y + self.kept",
    "z = torch.zeros(4, dtype=x.dtype)\n        " + NO_GRAD + "z += y.sum(0)\n        y = y * z",
    "z = torch.zeros(2, 4, dtype=x.dtype)\n        " + NO_GRAD + "z[1] = y.sum(0)\n        y = y * z.sum(0)",
    NO_GRAD + "z: torch.Tensor = y * 2\n            z *= 3\n        y = y + z",
]
OVERWRITES = [
    NO_GRAD + "y.round_()",
    NO_GRAD + "y[0] = 0.5",
    NO_GRAD + "y *= x.sum()",
    NO_GRAD + "y.mul_(2).add_(1)",
    NO_GRAD + "self.weight.clamp_(min=0.1)",
    NO_GRAD + "self.weight.fill_(3.0)",
    NO_GRAD + "self.head.weight.clamp_(min=0.1)",
    "y.data.clamp_(min=0)",
    "y.data[0] = 0.5",
    "y.data *= 0.5",
    "y.data -= x.sum()",
    "self.weight.data.mul_(0.5)",
    "self.head.weight.data = self.head.weight.data.clamp(min=0.1)",
    "self.head.bias.data.zero_()",
]


@pytest.mark.parametrize("overwrite", [*OVERWRITES, *FRESH])
def test_the_gradient_goes_on_to_what_was_there_before(overwrite: str) -> None:
    both = sides(NET.format(overwrite), "overwritten")
    assert both.gaps() == []
    x = np.random.default_rng(3).normal(size=(3, 5))
    with jax.enable_x64(True):
        reference, module = randomized(both.torch.A()), both.jax.A(rngs=both.jax.nnx.Rngs(0))
        load_torch_state(module, reference.state_dict())
        got, want = run_jax(module, [x], {}, train=True, jit=True), run_torch(reference, [x], {}, True)
    np.testing.assert_allclose(got.outputs[0], want.outputs[0], rtol=1e-10)
    for name, gradient in want.gradients.items():
        np.testing.assert_allclose(got.gradients[name], gradient, rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("overwrite", ["y.round_()", NO_GRAD + "y = y * 2", "y[0] = 0.5"])
def test_other_values_are_no_leaves(overwrite: str) -> None:
    """An operation that is recorded, and a name that is bound anew."""
    source = NET.format(overwrite)
    assert "old_" not in body(source)
    equal(source, "not_overwritten", 3, 5)


RETURNED = [
    "with torch.no_grad():\n        return y.copy_(w)",
    "with torch.no_grad():\n        return y.mul_(w).add_(1)",
    "with torch.no_grad():\n        y.mul_(w)\n        return y",
    "with torch.no_grad():\n        y.mul_(w)\n        return y.clamp_(min=0)",
    "with torch.no_grad():\n        z = y.mul_(w)\n    return z * x",
    "with torch.no_grad():\n        z = y\n    return z",
    "with torch.no_grad():\n        return y",
    "with torch.no_grad():\n        return y * w",
    "with torch.no_grad():\n        y = y * w\n        return y",
    "with torch.no_grad():\n        x.copy_(w)\n    return x * w",
]

THROUGH_DATA = [
    "x.data[0] *= 2\n    return x * w",
    "x.data += w\n    return x",
    "y.data.mul_(0.9).add_(w)\n    return y",
]


@pytest.mark.parametrize("rest", RETURNED + THROUGH_DATA)
def test_what_a_block_returns_or_names_anew_keeps_the_gradient_of_what_was_there(rest: str) -> None:
    head = "import torch\n\n\ndef f(x: torch.Tensor, w: torch.Tensor):\n    y = torch.sin(x)\n    "
    both = sides(head + rest, "returned")
    assert both.gaps() == []
    x, w = np.random.default_rng(3).normal(size=(2, 3, 5))
    given = [torch.tensor(v, requires_grad=True) for v in (x, w)]
    wanted = both.torch.f(given[0].clone(), given[1])
    with jax.enable_x64(True):
        x, w = jnp.asarray(x), jnp.asarray(w)
        np.testing.assert_allclose(both.jax.f(x, w), wanted.detach(), rtol=1e-12)
        got = jax.grad(lambda x, w: (both.jax.f(x, w) ** 2).sum(), (0, 1))(x, w)
    if wanted.requires_grad:
        (wanted**2).sum().backward()
    for one, other in zip(got, given, strict=True):
        np.testing.assert_allclose(one, np.zeros_like(x) if other.grad is None else other.grad, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("values", ["x.cos(), x.sin()", "(x.cos(), x.sin())", "(x + 1), x * 2", "((x + 1), (x * 2))"])
@pytest.mark.parametrize("block", ["with torch.no_grad():\n        return {}", "return {}"])
def test_several_values_carry_no_gradient(values: str, block: str) -> None:
    decorator = "" if "with" in block else "@torch.no_grad()\n"
    source = f"import torch\n\n\n{decorator}def f(x: torch.Tensor):\n    {block.format(values)}\n"
    both = sides(source, "several")
    x = np.random.default_rng(3).normal(size=(3, 5))
    with jax.enable_x64(True):
        for got, wanted in zip(both.jax.f(jnp.asarray(x)), both.torch.f(torch.tensor(x)), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12)
        gradient = jax.grad(lambda x: sum(part.sum() for part in both.jax.f(x)))(jnp.asarray(x))
    assert not gradient.any()


BESIDE_IT = {
    "y.cos(), y": "jax.lax.stop_gradient(jnp.cos(y)), y",
    "(y, y.cos())": "(y, jax.lax.stop_gradient(jnp.cos(y)))",
    "[y.cos(), y]": "[jax.lax.stop_gradient(jnp.cos(y)), y]",
    "y, (y.cos(), (y, y + 1))": "y, (jax.lax.stop_gradient(jnp.cos(y)), (y, jax.lax.stop_gradient(y + 1)))",
    "{'a': y.cos(), 'b': y}": "{'a': jax.lax.stop_gradient(jnp.cos(y)), 'b': y}",
    "dict(a=y.cos(), b=y)": "dict(a=jax.lax.stop_gradient(jnp.cos(y)), b=y)",
    "y if len(y) > 2 else y.cos()": "y if len(y) > 2 else jax.lax.stop_gradient(jnp.cos(y))",
    "y, y[0], y.T": "y, jax.lax.stop_gradient(y[0]), jax.lax.stop_gradient(y.T)",
}


@pytest.mark.parametrize("values", BESIDE_IT)
@pytest.mark.parametrize("block", ["with torch.no_grad():\n        return {}", "return {}"])
def test_what_was_there_before_keeps_its_gradient_beside_other_values(values: str, block: str) -> None:
    decorator = "" if "with" in block else "@torch.no_grad()\n"
    head = "import torch\n\n\ndef f(x: torch.Tensor):\n    y = torch.sin(x)\n    return g(x, y)\n\n\n"
    source = f"{head}{decorator}def g(x: torch.Tensor, y: torch.Tensor):\n    {block.replace('{}', values)}\n"
    both = sides(source, "beside_it")
    assert both.gaps() == []
    assert f"    return {BESIDE_IT[values]}\n" in both.translation.code
    x = np.random.default_rng(3).normal(size=(3, 5))
    given = torch.tensor(x, requires_grad=True)
    _total(both.torch.f(given)).backward()
    with jax.enable_x64(True):
        got = jax.grad(lambda x: _total(both.jax.f(x)))(jnp.asarray(x))
    np.testing.assert_allclose(got, given.grad, rtol=1e-10)


def _total(values: Any) -> Any:
    return sum((leaf**2).sum() for leaf in jax.tree.leaves(values))


UPDATED = """
import torch
from torch import nn


class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 4)
        self.register_buffer("center", torch.zeros(4))

    @torch.no_grad()
    def update(self, y: torch.Tensor):
        UPDATE

    def follow(self, y: torch.Tensor):
        with torch.no_grad():
            UPDATE

    def forward(self, x: torch.Tensor):
        y = self.fc(x)
        self.update(y)
        y = y - self.center
        self.follow(y)
        return y * self.center
"""


@pytest.mark.parametrize(
    "update",
    [
        "self.center = self.center * 0.9 + y.mean(0) * 0.1",
        "self.center.mul_(0.9).add_(y.mean(0), alpha=0.1)",
        "self.center += y.mean(0)",
        "self.center.copy_(y.mean(0))",
        "self.center[1:] = y.mean(0)[1:]",
    ],
)
def test_a_buffer_that_another_method_reads_is_fed_without_gradient(update: str) -> None:
    source = UPDATED.replace("UPDATE", update)
    assert body(source).count("jax.lax.stop_gradient(") == 2
    equal(source, "updated", 3, 5)


@pytest.mark.parametrize("update", ["self.center = y.mean(0).detach()", "self.center = torch.randn(4)"])
def test_what_feeds_a_buffer_no_gradient_is_not_stopped_again(update: str) -> None:
    text = body(UPDATED.replace("UPDATE", update))
    assert "stop_gradient" not in text.replace("jax.lax.stop_gradient(y.mean(axis=0))", "")


LEFT_ALONE = [
    # initialization
    "def init(m: nn.Linear):\n    m.weight.data.normal_(0, 0.02)\n    m.bias.data.zero_()\n",
    "def constant(x: torch.Tensor, value):\n    with torch.no_grad():\n        x.fill_(value)\n    return x\n",
    # nothing carries a gradient
    "def f(x: torch.Tensor):\n    y = torch.zeros(3)\n    with torch.no_grad():\n        y[0] = 2.0\n    return y\n",
    "def f(x: torch.Tensor):\n    y = x * 2\n    with torch.no_grad():\n        y.round_()\n    return x\n",
    "def f(x: torch.Tensor):\n    y = x > 2\n    with torch.no_grad():\n        y[0] = False\n    return x * y\n",
    # a shape is no value
    "def f(x: torch.Tensor):\n    y = x * 2\n    with torch.no_grad():\n        y.unsqueeze_(0)\n    return x * y\n",
]


@pytest.mark.parametrize("source", LEFT_ALONE)
def test_where_nothing_is_differentiated_it_stays_short(source: str) -> None:
    assert "old_" not in body(source)


METHODS = """
import torch
from torch import nn


class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 4)
        self.weight = nn.Parameter(torch.ones(4))

    {}

    def read(self, x):
        return self.fc(x) * self.weight

    def forward(self, x):
        {}
        return self.read(x)


class B(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = A()

    def forward(self, x):
        {}
        return self.a(x)
"""
IN_BLOCK = "def limit(self):\n        with torch.no_grad():\n            self.weight.clamp_(max=0.2)"
DECORATED = "@torch.no_grad()\n    def limit(self):\n        self.weight.clamp_(max=0.2)"
OF_LAYER = "@torch.no_grad()\n    def limit(self):\n        self.fc.weight.mul_(self.weight.sum())"
BY_DATA = "def limit(self):\n        self.weight.data = self.weight.data.clamp(max=0.2)"
INLINE = "with torch.no_grad():\n            self.weight.clamp_(max=0.2)"


@pytest.mark.parametrize(
    ("limit", "own", "other"),
    [
        (IN_BLOCK, "self.limit()", "pass"),
        (DECORATED, "self.limit()", "pass"),
        (OF_LAYER, "self.limit()", "pass"),
        (BY_DATA, "self.limit()", "pass"),
        (IN_BLOCK, INLINE, "pass"),
        (DECORATED, "pass", "self.a.limit()"),
    ],
)
def test_a_parameter_that_one_method_overwrites_and_another_reads(limit: str, own: str, other: str) -> None:
    both = sides(METHODS.format(limit, own, other), "overwritten_by_a_method")
    assert both.gaps() == []
    x = np.random.default_rng(3).normal(size=(3, 5))
    with jax.enable_x64(True):
        reference, module = randomized(both.torch.B()), both.jax.B(rngs=both.jax.nnx.Rngs(0))
        load_torch_state(module, reference.state_dict())
        got, want = run_jax(module, [x], {}, train=True, jit=True), run_torch(reference, [x], {}, True)
    np.testing.assert_allclose(got.outputs[0], want.outputs[0], rtol=1e-10)
    for name, gradient in want.gradients.items():
        np.testing.assert_allclose(got.gradients[name], gradient, rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("limit", [IN_BLOCK, DECORATED, BY_DATA])
def test_a_method_that_only_a_training_loop_calls_keeps_its_form(limit: str) -> None:
    assert "old_" not in body(METHODS.format(limit, "pass", "pass"))


def test_a_method_that_overwrites_and_returns_is_said() -> None:
    limit = DECORATED + "\n        return self.weight.sum()"
    assert any("overwrites" in reason for reason in sides(METHODS.format(limit, "self.limit()", "pass"), "said").gaps())


INITIAL = """
import math
import torch
from torch import nn


class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 5, 3), nn.Linear(5, 2)
        {}

    def weigh(self, m):
        if isinstance(m, nn.Conv2d):
            m.weight.data.normal_(0, math.sqrt(2.0 / (m.kernel_size[0] * m.out_channels)))
            m.bias.data.zero_()
        elif isinstance(m, nn.Linear):
            m.weight.data.uniform_(-1, 1)
            m.bias.data.zero_()

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).mean((2, 3)))
"""
LOOP = """for m in self.modules():
            if isinstance(m, nn.Conv2d):
                m.weight.data.normal_(0, math.sqrt(2.0 / (m.kernel_size[0] * m.out_channels)))
                m.bias.data.zero_()
            elif isinstance(m, nn.Linear):
                m.weight.data.uniform_(-1, 1)
                m.bias.data.zero_()"""


@pytest.mark.parametrize(
    "initial", [LOOP, "self.apply(self.weigh)", "self.fc.weight.data.normal_(0, self.fc.bias.std())"]
)
def test_initial_values_are_written_once_and_in_the_kernels_own_layout(initial: str) -> None:
    both = sides(INITIAL.format(initial), "initial")
    assert both.gaps() == [] and "old_" not in both.translation.code and "(-1, -2)" not in both.translation.code
    module = both.jax.A(rngs=both.jax.nnx.Rngs(0))
    assert module.conv.kernel.shape == (3, 3, 3, 5) and module.fc.kernel.shape == (5, 2)


@pytest.mark.parametrize(
    "function",
    [
        "def f(x: torch.Tensor):\n    with torch.no_grad():\n        words = ['end']\n        return words, x * 2\n",
        "@torch.no_grad()\ndef f(x: torch.Tensor):\n    words = []\n    words.append('end')\n    return words, x * 2\n",
    ],
)
def test_words_beside_an_array_are_not_stopped(function: str) -> None:
    assert "return words, jax.lax.stop_gradient(x * 2)" in convert(f"import torch\n\n\n{function}").code


REGISTERED = """
import torch
from torch import nn


class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_parameter("b", nn.Parameter(torch.zeros(1, 4), requires_grad=True))

    def shifted(self, x):
        self.b.data.copy_(-x.mean(0, keepdim=True).detach())
        return (x + self.b).pow(3)


class A(Shift):
    def forward(self, x):
        return super(A, self).shifted(x)
"""


def test_a_parameter_that_is_registered_by_its_name_keeps_its_gradient() -> None:
    both = sides(REGISTERED, "registered_and_overwritten")
    assert both.gaps() == []
    x = np.random.default_rng(3).normal(size=(3, 4))
    with jax.enable_x64(True):
        reference, module = randomized(both.torch.A()), both.jax.A(rngs=both.jax.nnx.Rngs(0))
        load_torch_state(module, reference.state_dict())
        got, want = run_jax(module, [x], {}, train=True, jit=True), run_torch(reference, [x], {}, True)
    assert np.abs(want.gradients["b"]).max() > 0.1
    np.testing.assert_allclose(got.gradients["b"], want.gradients["b"], rtol=1e-10)
