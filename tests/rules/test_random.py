"""Conversions of ``rules/random.py``, in text and in distribution: the draws themselves differ."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

from .conversion import HEADER, converted, left_alone, refused

ROWS = [
    ("torch.rand(2, 3)", "rngs.uniform((2, 3))", ""),
    ("torch.rand(3)", "rngs.uniform((3,))", ""),
    ("torch.randn(x.shape, device=x.device)", "rngs.normal(x.shape)", "x"),
    ("torch.randn(*x.shape, dtype=torch.float16)", "rngs.normal(x.shape, jnp.float16)", "x"),
    ("torch.randn((2, x.size(1)))", "rngs.normal((2, x.shape[1]))", "x"),
    ("torch.rand_like(x)", "rngs.uniform(x.shape, x.dtype)", "x"),
    ("torch.randn_like(x + 1)", "x2 = x + 1; rngs.normal(x2.shape, x2.dtype)", "x"),
    ("torch.randn_like(x, dtype=torch.float32)", "rngs.normal(x.shape, jnp.float32)", "x"),
    ("torch.randint(10, (2, 3))", "rngs.randint((2, 3), 0, 10)", ""),
    ("torch.randint(0, 10, (4,))", "rngs.randint((4,), 0, 10)", ""),
    ("torch.randint(low=-3, high=3, size=x.shape)", "rngs.randint(x.shape, -3, 3)", "x"),
    ("torch.randint(5, (2,), dtype=torch.float32)", "rngs.randint((2,), 0, 5).astype(jnp.float32)", ""),
    ("torch.randint_like(x, 2, 5)", "rngs.randint(x.shape, 2, 5).astype(x.dtype)", "x"),
    ("torch.randperm(5)", "rngs.permutation(5)", ""),
    ("torch.normal(0, 1, (2, 3))", "rngs.normal((2, 3))", ""),
    ("torch.normal(1.0, 2.0, size=(2, 3))", "1.0 + 2.0 * rngs.normal((2, 3))", ""),
    ("torch.normal(x, 0.5)", "jax.lax.stop_gradient(x + 0.5 * rngs.normal(x.shape, x.dtype))", "x"),
    ("torch.normal(torch.zeros(3, 1), torch.ones(3, 1))", "rngs.normal((3, 1))", ""),
    (
        "torch.normal(torch.zeros(3), torch.ones(1))",
        "std = jnp.ones(1); jax.lax.stop_gradient("
        "         std * rngs.normal(jnp.broadcast_shapes((3,), std.shape))     )",
        "",
    ),
    (
        "torch.normal(torch.zeros(1), x)",
        "jax.lax.stop_gradient(x * rngs.normal(jnp.broadcast_shapes((1,), x.shape)))",
        "x",
    ),
    ("torch.normal(x, torch.exp(x))", "jax.lax.stop_gradient(x + jnp.exp(x) * rngs.normal(x.shape, x.dtype))", "x"),
    (
        "torch.normal(x[0], x)",
        "jax.lax.stop_gradient("
        "         x[0] + x * rngs.normal(jnp.broadcast_shapes(x[0].shape, x.shape), x[0].dtype)"
        "     )",
        "x",
    ),
    ("torch.normal(x, 0.5).detach()", "jax.lax.stop_gradient(x + 0.5 * rngs.normal(x.shape, x.dtype))", "x"),
    ("torch.normal(torch.zeros(*x.size()))", "rngs.normal(x.shape)", "x"),
    (
        "torch.normal(mean=x, std=x.abs())",
        "jax.lax.stop_gradient(x + absolute(x) * rngs.normal(x.shape, x.dtype))",
        "x",
    ),
    ("torch.bernoulli(p)", "rngs.bernoulli(p).astype(p.dtype)", "p"),
    ("p.bernoulli()", "rngs.bernoulli(p).astype(p.dtype)", "p"),
    ("torch.bernoulli(x, 0.3)", "rngs.bernoulli(0.3, x.shape).astype(x.dtype)", "x"),
    ("torch.poisson(p)", "rngs.poisson(p).astype(p.dtype)", "p"),
    ("torch.multinomial(p, 1)", "rngs.categorical(jnp.log(p))[..., None]", "p"),
    ("torch.multinomial(p, num_samples=2)", "multinomial(rngs, p, 2)", "p"),
    ("p.multinomial(4, replacement=True)", "multinomial(rngs, p, 4, replacement=True)", "p"),
    ("torch.empty(2, 3).uniform_(-1, 1)", "rngs.uniform((2, 3), minval=-1)", ""),
    ("torch.empty(2, 3).uniform_(2, 5)", "rngs.uniform((2, 3), minval=2, maxval=5)", ""),
    ("torch.zeros(3, dtype=torch.float16).normal_()", "rngs.normal((3,), jnp.float16)", ""),
    ("torch.zeros((2, 1)).half().uniform_(0, 1)", "rngs.uniform((2, 1), jnp.float16)", ""),
    ("torch.zeros(3).sum().normal_()", "x = jnp.zeros(3).sum(); rngs.normal(x.shape, x.dtype)", ""),
    ("x.new_empty((2, 1)).bernoulli_(0.5)", "rngs.bernoulli(0.5, (2, 1)).astype(x.dtype)", "x"),
    ("torch.empty_like(x).normal_(1, 2)", "x2 = jnp.empty_like(x); 1 + 2 * rngs.normal(x2.shape, x2.dtype)", "x"),
    ("t = x * 1; t.exponential_(2); t", "t = x * 1; t = rngs.exponential(t.shape, t.dtype) / 2; t", "x"),
    ("t = x * 1; t.cauchy_(); t", "t = x * 1; t = rngs.cauchy(t.shape, t.dtype); t", "x"),
    (
        "t = x * 1; t.log_normal_(0, 0.5); t",
        "t = x * 1; t = jnp.exp(0.5 * rngs.normal(t.shape, t.dtype)); t",
        "x",
    ),
    ("t = x * 1; t.geometric_(0.5); t", "t = x * 1; t = rngs.geometric(0.5, t.shape).astype(t.dtype); t", "x"),
    ("t = x * 1; t.random_(3, 6); t", "t = x * 1; t = rngs.randint(t.shape, 3, 6).astype(t.dtype); t", "x"),
    ("t = x * 1; t.random_(6); t", "t = x * 1; t = rngs.randint(t.shape, 0, 6).astype(t.dtype); t", "x"),
]
"""In PyTorch, in JAX, and the tensors it takes: x of ones, p of weights."""

X = np.ones((400, 300), np.float32)
P = np.random.default_rng(0).uniform(0.1, 1, (2000, 6)).astype(np.float32)


def load(code: str) -> Any:
    space: dict[str, Any] = {}
    exec(compile(code, "snippet", "exec"), space)
    return space


@pytest.mark.parametrize(("source", "jax_text", "inputs"), ROWS, ids=[row[0] for row in ROWS])
def test_a_draw_has_the_text_and_the_shape_and_the_dtype(source: str, jax_text: str, inputs: str) -> None:
    text, translation = converted(source, inputs, x64=False)
    assert [gap.reason for gap in translation.gaps] == []
    assert text == jax_text
    arrays = [{"x": X[:4, :3], "p": P[:4]}[name] for name in inputs]
    want = load(translation.source)["f"](*[torch.from_numpy(a.copy()) for a in arrays])
    space = load(translation.code)
    got = space["f"](*map(jnp.asarray, arrays), rngs=space["nnx"].Rngs(0))
    assert got.shape == tuple(want.shape)
    narrowed = {"int64": "int32", "float64": "float32"}
    name = str(want.dtype).removeprefix("torch.")
    assert str(got.dtype) == narrowed.get(name, name)


def test_what_normal_draws_passes_no_gradient_as_in_pytorch() -> None:
    _, translation = converted("torch.normal(x, 2 * x)", "x", x64=False)
    x = torch.ones(3, requires_grad=True)
    load(translation.source)["f"](x).sum().backward()
    space = load(translation.code)
    slope = jax.grad(lambda x: space["f"](x, rngs=space["nnx"].Rngs(0)).sum())(jnp.ones(3))
    assert x.grad is not None and slope.tolist() == x.grad.tolist() == [0, 0, 0]


SAME_LAW = [
    "torch.rand(x.shape)",
    "torch.randn_like(x)",
    "torch.randint(-3, 9, x.shape).float()",
    "torch.normal(x, 2 * x)",
    "torch.normal(1.0, 2.0, x.shape)",
    "torch.bernoulli(0.2 * x)",
    "torch.poisson(3 * x)",
    "torch.empty(x.shape).uniform_(-3, 5)",
    "torch.empty(x.shape).normal_(1, 2)",
    "torch.empty(x.shape).bernoulli_(0.7)",
    "torch.empty(x.shape).exponential_(0.5)",
    "torch.empty(x.shape).geometric_(0.4)",
    "torch.empty(x.shape).log_normal_(0, 0.3)",
    "torch.multinomial(x[:, :5] * torch.tensor([1.0, 2.0, 3.0, 0.0, 4.0]), 1).float()",
    "torch.multinomial(x[:, :5] * torch.tensor([1.0, 2.0, 3.0, 0.0, 4.0]), 3).float()",
    "torch.multinomial(x[:, :5] * torch.tensor([1.0, 2.0, 3.0, 0.0, 4.0]), 7, replacement=True).float()",
]


@pytest.mark.parametrize("source", SAME_LAW)
def test_draws_follow_the_same_law(source: str) -> None:
    """Mean, spread and quantiles of many draws, within five standard errors."""
    translation = converted(source, "x", x64=False)[1]
    torch.manual_seed(0)
    want = load(translation.source)["f"](torch.from_numpy(X.copy())).numpy().ravel().astype(float)
    space = load(translation.code)
    got = np.asarray(space["f"](jnp.asarray(X), rngs=space["nnx"].Rngs(0))).ravel().astype(float)
    error = 5 * want.std() / np.sqrt(want.size / 2)
    assert abs(got.mean() - want.mean()) < error
    assert abs(got.std() - want.std()) < 5 * error
    quantiles = [0.1, 0.25, 0.5, 0.75, 0.9]
    np.testing.assert_allclose(np.quantile(got, quantiles), np.quantile(want, quantiles), atol=20 * error)


def test_draws_without_replacement_never_repeat() -> None:
    space = load(converted("torch.multinomial(p, 4)", "p", x64=False)[1].code)
    drawn = np.asarray(space["f"](jnp.asarray(P), rngs=space["nnx"].Rngs(0)))
    assert all(len(set(row)) == 4 for row in drawn.tolist())


def test_two_draws_differ_and_a_seed_repeats_them() -> None:
    source = HEADER + "\ntorch.manual_seed(3)\na = torch.randn(4)\nb = torch.randn(4)\n"
    code = translate(source, Options()).code
    assert "rngs = nnx.Rngs(3)\na = rngs.normal((4,))\nb = rngs.normal((4,))" in code
    first, second = load(code), load(code)
    assert not np.array_equal(first["a"], first["b"])
    np.testing.assert_array_equal(first["a"], second["a"])


def test_draws_work_under_jit() -> None:
    space = load(converted("torch.rand_like(x).bernoulli() + torch.randint(3, x.shape)", "x", x64=False)[1].code)
    nnx = space["nnx"]
    jitted = nnx.jit(lambda rngs, x: space["f"](x, rngs=rngs))
    rngs = nnx.Rngs(0)
    first, second = jitted(rngs, jnp.asarray(X)), jitted(rngs, jnp.asarray(X))
    assert isinstance(first, jax.Array) and not np.array_equal(first, second)


REFUSED = [
    ("t = x * 1; t.random_(); t", "without bounds", "x"),
    ("torch.get_rng_state()", "no global generator", ""),
    ("torch.seed()", "no global generator", ""),
    ("torch.normal(a, b)", "no sure JAX form", ""),
]


@pytest.mark.parametrize(("source", "reason", "inputs"), REFUSED)
def test_what_is_not_sure_stays(source: str, reason: str, inputs: str) -> None:
    refused(source, reason, inputs)


ALONE = [
    "import random\n\na = random.random()",
    "b = np.random.rand(3)",
    "c = np.random.default_rng(0).normal(size=3)",
    "import random\n\nrandom.seed(0)\nd = random.randint(0, 3)",
]


@pytest.mark.parametrize("source", ALONE)
def test_draws_of_other_libraries_stay(source: str) -> None:
    left_alone(source)
