"""A parameter's default says what kind of value it is, and not that it is this one: callers give others."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp import convert

from .side_by_side import sides

HEAD = "import torch\nimport torch.nn.functional as F\n\n\n"
FUNCTIONS = """
def act(x: torch.Tensor, fn=F.relu):
    return fn(x).sum(dim=1)


def reduced(xs, red=torch.cat):
    return red([x.sigmoid() for x in xs])


class Net(torch.nn.Module):
    def __init__(self, fn=torch.tanh):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x) * 2
"""


def test_a_function_that_is_given_is_the_one_that_is_called() -> None:
    both = sides(HEAD + FUNCTIONS, "given_functions")
    assert both.gaps() == []
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    t, j = torch.from_numpy(x), jnp.asarray(x)
    pairs = [
        (both.torch.act(t), both.jax.act(j)),
        (both.torch.act(t, torch.sin), both.jax.act(j, jnp.sin)),
        (both.torch.reduced([t, t]), both.jax.reduced([j, j])),
        (both.torch.reduced([t, t], torch.stack), both.jax.reduced([j, j], jnp.stack)),
        (both.torch.Net()(t), both.jax.Net(rngs=None)(j)),
        (both.torch.Net(torch.exp)(t), both.jax.Net(jnp.exp, rngs=None)(j)),
    ]
    for want, got in pairs:
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-5)


def test_a_dtype_that_is_given_is_the_one_that_is_asked_for() -> None:
    text = "def f(x: torch.Tensor, n, dtype=torch.float32):\n    return x.to(dtype), torch.ones(n, dtype=dtype)\n"
    both = sides(HEAD + text, "given_dtypes")
    assert both.gaps() == []
    with jax.enable_x64(True):
        for one, other in ((torch.float64, jnp.float64), (torch.int32, jnp.int32)):
            want, got = both.torch.f(torch.ones(2), 3, one), both.jax.f(jnp.ones(2, jnp.float32), 3, other)
            assert [str(v.dtype).removeprefix("torch.") for v in want] == [str(v.dtype) for v in got]


@pytest.mark.parametrize(
    ("call", "gap"),
    [("red(x, dim=1)", True), ("red(x, keepdim=True, dim=0)", True), ("red(x, 1)", False), ("red(x)", False)],
)
def test_keywords_that_jax_has_not_are_told(call: str, gap: bool) -> None:
    gaps = convert(HEAD + f"def f(x: torch.Tensor, red=torch.mean):\n    return {call}\n").gaps
    assert ["by position" in g.reason for g in gaps] == [True] * gap


REBOUND = """
ACT, KIND = F.relu, torch.float32


def choose():
    global ACT, KIND
    ACT, KIND = torch.tanh, torch.float16


def f(x: torch.Tensor):
    return ACT(x).to(KIND)
"""


def test_a_global_that_a_function_binds_is_what_it_is_then() -> None:
    both = sides(HEAD + REBOUND, "rebound")
    assert both.gaps() == []
    for side in (both.torch, both.jax):
        side.choose()
    want, got = both.torch.f(torch.tensor([-1.0, 2.0])), both.jax.f(jnp.asarray([-1.0, 2.0]))
    assert str(got.dtype) == "float16"
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-3)
