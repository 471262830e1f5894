"""Reductions, running sums, sorting and order statistics: what they become, and what is left alone."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

from .conversion import agrees, converted, left_alone, refused

REDUCTIONS = [
    ("torch.mean(x, dim=-1, keepdim=True, out=None)", "jnp.mean(x, axis=-1, keepdims=True)", "x"),
    ("x.sum()", "x.sum()", "x"),
    ("torch.sum(x, 1)", "jnp.sum(x, axis=1)", "x"),
    ("x.sum(dim=(0, 2), keepdim=True)", "x.sum(axis=(0, 2), keepdims=True)", "x"),
    ("x.mean([1, 2])", "x.mean(axis=(1, 2))", "x"),
    ("x.mean(axis=-1, keepdims=True)", "x.mean(axis=-1, keepdims=True)", "x"),
    ("torch.mean(x, dim=[0])", "jnp.mean(x, axis=(0,))", "x"),
    ("m.sum(1, dtype=torch.float64)", "m.sum(axis=1, dtype=jnp.float64)", "m"),
    (
        "dims = list(range(x.ndim - 2)); x.sum(dims)",
        "dims = list(range(x.ndim - 2)); x.sum(axis=tuple(dims) or None)",
        "x",
    ),
    ("dims = list(range(1, x.ndim)); x.any(dims)", "dims = list(range(1, x.ndim)); x.any(axis=tuple(dims))", "x"),
    ("dims = [0, 1]; x.sum(dims)", "dims = [0, 1]; x.sum(axis=tuple(dims))", "x"),
    ("x.sum(dim=())", "x.sum()", "x"),
    ("x.prod(1)", "x.prod(axis=1)", "x"),
    ("x.amax((1, 2))", "x.max(axis=(1, 2))", "x"),
    ("torch.amin(x, 0)", "jnp.min(x, axis=0)", "x"),
    ("m.any(1).all()", "m.any(axis=1).all()", "m"),
    ("torch.logsumexp(x, dim=1, keepdim=True)", "jax.nn.logsumexp(x, axis=1, keepdims=True)", "x"),
    ("x.count_nonzero(1)", "jnp.count_nonzero(x, axis=1)", "x"),
]

SPREAD = [
    ("x.var()", "x.var(ddof=1)", "x"),
    ("x.var(1)", "x.var(axis=1, ddof=1)", "x"),
    ("x.var(False)", "x.var()", "x"),
    ("x.var(unbiased=False)", "x.var()", "x"),
    ("x.var(1, False, True)", "x.var(axis=1, keepdims=True)", "x"),
    ("torch.var(x, dim=(0, 1), correction=0)", "jnp.var(x, axis=(0, 1))", "x"),
    ("x.std(-1, keepdim=True)", "standard_deviation(x, axis=-1, keepdims=True)", "x"),
    ("torch.std(x, dim=1, unbiased=False)", "standard_deviation(x, axis=1, ddof=0)", "x"),
    ("v, m = torch.var_mean(x, 1); v - m", "v, m = (jnp.var(x, axis=1, ddof=1), jnp.mean(x, axis=1)); v - m", "x"),
]

NORMS = [
    ("x.norm()", "optax.safe_norm(x, 0)", "x"),
    ("x.norm(dim=1, keepdim=True)", "optax.safe_norm(x, 0, axis=1, keepdims=True)", "x"),
    ("torch.norm(x, p=2, dim=-1)", "optax.safe_norm(x, 0, axis=-1)", "x"),
    ("torch.norm(x, 1)", "vector_norm(x, 1)", "x"),
    ("x.norm(p=float('inf'), dim=2)", "vector_norm(x, float('inf'), axis=2)", "x"),
    ("torch.linalg.vector_norm(x, dim=(1, 2))", "optax.safe_norm(x, 0, axis=(1, 2))", "x"),
    ("torch.linalg.norm(x, dim=-1)", "optax.safe_norm(x, 0, axis=-1)", "x"),
    ("torch.linalg.norm(x, 3, dim=-1)", "vector_norm(x, 3, axis=-1)", "x"),
    ("torch.dist(x, y)", "optax.safe_norm(x - y, 0)", "xy"),
]

PAIRS = [
    ("v, i = x.max(1); v + i", "v, i = max_with_indices(x, axis=1); v + i", "x"),
    ("x.max(dim=1, keepdim=True)[0]", "max_with_indices(x, axis=1, keepdims=True)[0]", "x"),
    ("x.min(-1).values", "min_with_indices(x, axis=-1).values", "x"),
    ("torch.max(x, 1)[1]", "jnp.argmax(x, axis=1)", "x"),
    ("x.max(1, keepdim=True).indices", "x.argmax(axis=1, keepdims=True)", "x"),
    ("_, predicted = torch.max(a, 1); predicted", "predicted = jnp.argmax(a, axis=1); predicted", "a"),
    ("n.max(0)[0]", "max_with_indices(n, axis=0)[0]", "n"),
    ("torch.max(x, y)", "jnp.maximum(x, y)", "xy"),
    ("x.min(other=y)", "jnp.minimum(x, y)", "xy"),
    ("x.max()", "x.max()", "x"),
    ("x.argmax()", "x.argmax()", "x"),
    ("torch.argmin(x, dim=1, keepdim=True)", "jnp.argmin(x, axis=1, keepdims=True)", "x"),
    ("v, i = x.topk(2); v", "v, i = top_k(x, 2); v", "x"),
    ("x.topk(2, dim=1).values", "jax.lax.top_k(x, 2, axis=1)[0]", "x"),
    ("x.topk(2, largest=False)[0]", "top_k(x, 2, largest=False)[0]", "x"),
    ("top = x.topk(2, dim=0); top.values", "top = top_k(x, 2, axis=0); top.values", "x"),
    ("x.sort(1, descending=True)[0]", "jnp.sort(x, axis=1, descending=True)", "x"),
    ("s, order = torch.sort(x); s", "s, order = sort_with_indices(x); s", "x"),
    ("_, order = torch.sort(x, dim=0); order", "order = jnp.argsort(x, axis=0); order", "x"),
    ("x.argsort(1, descending=True)", "jnp.argsort(x, axis=1, descending=True)", "x"),
    ("x.median(dim=1).values", "median_with_indices(x, axis=1).values", "x"),
    ("x.median()", "lower_median(x)", "x"),
    ("x.kthvalue(2, dim=1)[0]", "kth_value(x, 2, axis=1)[0]", "x"),
]

RUNNING = [
    ("torch.gradient(x, spacing=0.5, dim=1)[0]", "gradient(x, spacing=0.5, axis=1)[0]", "x"),
    (
        "torch.gradient(u, spacing=[v[:4]], edge_order=2)[0]",
        "gradient(u, spacing=[v[:4]], edge_order=2)[0]",
        "uv",
    ),
    ("torch.complex(u, x).abs()", "absolute(jax.lax.complex(*jnp.broadcast_arrays(u, x)))", "ux"),
    (
        "torch.cat([torch.zeros(0), torch.ones(3, 5)], 1)",
        "jnp.concatenate([jnp.ones((3, 5), dtype=jnp.float32)], axis=1)",
        "",
    ),
    ("x.cumsum(1)", "x.cumsum(axis=1)", "x"),
    ("torch.cumsum(x, dim=-1)", "jnp.cumsum(x, axis=-1)", "x"),
    ("x.cumprod(dim=0)", "x.cumprod(axis=0)", "x"),
    ("x.cummax(1)[0]", "cummax_with_indices(x, axis=1)[0]", "x"),
    ("torch.diff(x, dim=1)", "jnp.diff(x, axis=1)", "x"),
    ("torch.trapezoid(a, b)", "jnp.trapezoid(a, x=b)", "ab"),
    ("torch.trapezoid(a, dx=0.5, dim=0)", "jnp.trapezoid(a, dx=0.5, axis=0)", "a"),
    ("torch.quantile(x, 0.3, dim=1)", "jnp.quantile(x, 0.3, axis=1)", "x"),
    ("torch.histc(x, 5, -1, 1)", "jnp.histogram(x, bins=5, range=(-1, 1))[0]", "x"),
    ("x.aminmax().max", "jnp.max(x)", "x"),
    (
        "r = x.aminmax(dim=1); r.max - r.min",
        "r = (jnp.min(x, axis=1), jnp.max(x, axis=1)); r[1] - r[0]",
        "x",
    ),
    ("r = torch.frexp(x); r.mantissa + 1", "r = jnp.frexp(x); r[0] + 1", "X"),
    ("r = torch.histogram(x, 3); r.hist.sum()", "r = jnp.histogram(x, 3); r[0].sum()", "X"),
    ("torch.frexp(x).mantissa", "jnp.frexp(x)[0]", "x"),
]

WITHOUT_AXES = [
    ("x.mean().sum(0)", "jnp.atleast_1d(x.mean()).sum(axis=0)", "x"),
    ("x.sum().mean(dim=-1, keepdim=True)", "jnp.atleast_1d(x.sum()).mean(axis=-1)", "x"),
    ("x.sum().softmax(0)", "jax.nn.softmax(jnp.atleast_1d(x.sum()), axis=0).squeeze()", "x"),
    ("x.sum().logsumexp((0,))", "jax.nn.logsumexp(jnp.atleast_1d(x.sum()), axis=(0,))", "x"),
    ("x.sum().topk(1).values", "jax.lax.top_k(jnp.atleast_1d(x.sum()), 1)[0].squeeze()", "x"),
    (
        "s, i = x.sum().sort(); s + i",
        "s, i = jax.tree.map(jnp.squeeze, sort_with_indices(jnp.atleast_1d(x.sum()))); s + i",
        "x",
    ),
    ("x.sum().max(0)[0]", "max_with_indices(jnp.atleast_1d(x.sum()), axis=0)[0]", "x"),
    ("x.sum().sum(dim=None)", "x.sum().sum()", "x"),
    ("x.sum().unsqueeze(0)", "x.sum()[None]", "x"),
    ("x.sum().transpose(0, -1)", "x.sum()", "x"),
]


@pytest.mark.parametrize(
    ("torch_code", "jax_code", "inputs"),
    [*REDUCTIONS, *SPREAD, *NORMS, *PAIRS, *RUNNING, *WITHOUT_AXES],
    ids=lambda v: v,
)
def test_becomes(torch_code: str, jax_code: str, inputs: str) -> None:
    agrees(torch_code, jax_code, inputs)


@pytest.mark.parametrize(
    ("torch_code", "jax_code", "note"),
    [
        ("x.unique()", "jnp.unique(x)", "size"),
        ("torch.unique(x, return_counts=True)", "jnp.unique(x, return_counts=True)", "size"),
        ("n.bincount(minlength=3)", "jnp.bincount(n, minlength=3)", "length"),
        ("x.unique_consecutive(dim=1)", "unique_consecutive(x, axis=1)", "size"),
        ("x.as_strided((2, 2), (1, 2), 1)", "x.ravel()[strided_index((2, 2), (1, 2), 1)]", "memory"),
    ],
)
def test_becomes_with_a_note(torch_code: str, jax_code: str, note: str) -> None:
    text, translation = converted(torch_code, torch_code[0] if torch_code[1] == "." else "x")
    assert text == jax_code
    assert any(note in finding.reason for finding in translation.notes)


def test_in_a_module_the_size_of_counts_is_the_least_that_is_asked_for() -> None:
    """There it can't depend on the values, which jax.jit doesn't know."""
    method = "class M(torch.nn.Module):\n    def forward(self, x):\n        return torch.bincount(x.long(), {})\n"
    code = translate("import torch\n\n\n" + method.format("minlength=4")).code
    assert "jnp.bincount(x.astype(jnp.int32), length=4)" in code
    assert "jnp.bincount(x.astype(jnp.int32))" in translate("import torch\n\n\n" + method.format("")).code


NOT_TORCH = [
    "def f(frame):\n    return frame.max(axis=0)",
    "def f(frame):\n    return frame.mean(axis=1).sum()",
    "def f(counts: dict):\n    return max(counts.values()), sum(counts.values())",
    "def f(numbers):\n    numbers.sort()\n    return numbers",
    "def f(series):\n    return series.std(), series.var(), series.median()",
    "def f(a, b):\n    return np.max(a), np.maximum(a, b), np.std(a)",
    "def f(a, b):\n    return max(a, b), min(a, b), sorted(a), any(a), all(b)",
    "def f(frame):\n    return frame.unique()",
    "def f(frame):\n    return frame.cumsum(axis=0).quantile(0.5)",
    "def f(words):\n    return words.mode().values",
]


@pytest.mark.parametrize("source", NOT_TORCH)
def test_code_that_is_not_torchs_stays(source: str) -> None:
    left_alone(source)


REFUSED = [
    ("torch.max(x, k)", "can't tell whether k is a dim or a tensor", "x"),
    ("torch.cat([u.reshape(0), a], dim=1)", "leaves out an empty vector", "ua"),
]


@pytest.mark.parametrize(("torch_code", "reason", "inputs"), REFUSED)
def test_is_refused(torch_code: str, reason: str, inputs: str) -> None:
    refused(torch_code, reason, inputs)
