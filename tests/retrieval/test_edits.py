"""The words of an edit: the same mistake has the same words, in whatever program, spelling and framework."""

from __future__ import annotations

import pytest

from t2j_lsp.retrieval.canonical import statements
from t2j_lsp.retrieval.edits import edits


@pytest.mark.parametrize(
    ("torch", "jax"),
    [
        ("y = x.mean(-1, keepdim=True)", "y = jnp.mean(x, axis=-1, keepdims=True)"),
        ("y = torch.cat([a, b], 1)", "y = jnp.concatenate([a, b], axis=1)"),
        ("y = x.masked_fill(m, 0.0)", "y = jnp.where(m, 0.0, x)"),
        ("y = x.t() @ w", "y = x.T @ w"),
        ("y = F.mse_loss(a, b)", "y = jnp.mean(optax.losses.mse_loss(a, b))"),
        ("y = a * torch.rsqrt(b)", "y = a / jnp.sqrt(b)"),
        ("y = x.pow(2).sum(dim=1)", "y = (x**2).sum(axis=1)"),
        ("y = x.std()", "y = jnp.std(x, ddof=1)"),
        ("y = x.size(0)", "y = x.shape[0]"),
        ("y = self.w * x", "y = self.w[...] * x"),
    ],
)
def test_a_right_translation_is_no_edit(torch: str, jax: str) -> None:
    assert edits(torch, jax, torch=True) == []


@pytest.mark.parametrize(
    ("right", "wrong", "word"),
    [
        ("y = x.mean(axis=1, keepdims=True)", "y = x.mean(axis=1)", "no keepdims"),
        ("y = jnp.where(m, a, b)", "y = jnp.where(m, b, a)", "swapped call where"),
        ("y = nnx.Linear(a, b, rngs=rngs)", "y = nnx.Linear(b, a, rngs=rngs)", "rearranged call Linear"),
        ("y = jax.lax.stop_gradient(a) * b", "y = a * b", "dropped call stop_gradient"),
        ("y = loss(a)", "y = loss(jax.nn.softmax(a))", "added any softmax"),
        ("y = jnp.tanh(x @ w.T)", "y = jnp.tanh(x @ w)", "dropped call T"),
        ("y = x + f(x)", "y = f(x)", "dropped op Add"),
        ("y = 0.9 * a + 0.1 * b", "y = 0.1 * a + 0.9 * b", "const complement"),
        ("y = x.std(ddof=1)", "y = x.std()", "in call std.ddof"),
        ("n = nnx.LayerNorm(4, epsilon=1e-5, rngs=r)", "n = nnx.LayerNorm(4, rngs=r)", "in any norm layer.epsilon"),
        ("w, s = step(w, s)", "w, _ = step(w, s)", "ignored"),
        ("for i in y:\n    x = f(x)\nreturn x", "for i in y:\n    x = f(x)\n    return x", "return into for"),
    ],
)
def test_a_mistake_has_its_word(right: str, wrong: str, word: str) -> None:
    assert word in edits(right, wrong)
    assert edits(right, right) == []


def test_what_pytorch_takes_by_default_is_seen_where_jax_takes_another() -> None:
    assert "in call gelu.approximate" in edits("y = F.gelu(x)", "y = jax.nn.gelu(x)", torch=True)
    assert edits("y = F.gelu(x)", "y = jax.nn.gelu(x, approximate=False)", torch=True) == []


def test_only_the_lines_asked_for_count() -> None:
    right, wrong = "a = jnp.sum(x)\nb = jnp.exp(x)\n", "a = jnp.mean(x)\nb = jnp.log(x)\n"
    assert "call sum > call mean" in edits(right, wrong, (1, 1))
    assert "call exp > call log" not in edits(right, wrong, (1, 1))


def test_a_statement_that_moved_into_a_function_of_its_own_is_still_compared() -> None:
    right = "def fit(x):\n    for i in x:\n        s = x @ w.T + b\n        y = jnp.exp(s)\n    return y\n"
    score = "def score(x):\n    s = x @ w.T\n    return s\n"
    wrong = score + "\n\ndef fit(x):\n    for i in x:\n        y = score(x)\n    return y\n"
    assert "dropped op Add" in edits(right, wrong, (2, 2))


def test_helpers_of_the_rules_are_no_part_of_the_program() -> None:
    reference = "def helper(x):\n    return jnp.exp(x)\n\n\ndef f(x):\n    return jnp.sin(x)\n"
    assert edits(reference, "def f(x):\n    return jnp.sin(x)\n", only=frozenset({"f"})) == []


def test_what_is_no_python_has_no_statements() -> None:
    assert statements("def f(:") == [] and edits("x = 1", "def f(:") == []
