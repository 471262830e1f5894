"""Arrays that a module keeps in attributes when it is called: NNX hands them out of a transformed call as data."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from t2j_lsp import convert

SOURCE = """import torch
from torch import nn


class Inner(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))
        self.last = None
        self.parts = []
        self.named = {}
        self.count = 0
        self.zero = torch.zeros(n)

    def forward(self, x):
        h = x * self.weight
        self.last = h
        self.mean = h.mean()
        self.pair = (h, x)
        self.parts.append(h)
        self.named["sum"] = h.sum()
        self.zero = h[0]
        return h * self.mean


class Outer(Inner):
    def __init__(self, n):
        super().__init__(n)
        self.inner = Inner(n)

    def forward(self, x):
        self.inner.scale = x.max()
        self.zero = x[0]
        y = self.inner(x)
        return y + self.inner.last + self.inner.scale
"""


def program() -> dict[str, Any]:
    translation = convert(SOURCE)
    assert not translation.gaps
    names: dict[str, Any] = {}
    exec(translation.code, names)
    return names


@pytest.mark.parametrize("way", ["eager", "jit", "grad", "both"])
def test_what_a_call_keeps_is_an_array_afterwards(way: str) -> None:
    model = program()["Outer"](3, rngs=nnx.Rngs(0))
    x = jnp.arange(6.0).reshape(2, 3)

    def loss(model: Any, x: jax.Array) -> jax.Array:
        return model(x).sum()

    run = {"eager": loss, "jit": nnx.jit(loss), "grad": nnx.grad(loss), "both": nnx.jit(nnx.grad(loss))}[way]
    run(model, x)
    run(model, x + 1)
    inner = model.inner
    kept = [inner.last, inner.mean, *inner.pair, *inner.parts, inner.named["sum"], inner.zero, inner.scale, model.zero]
    assert not any(isinstance(value, jax.core.Tracer) for value in kept)
    assert float(inner.mean) == 3.5 and len(inner.parts) == 2 and inner.scale == 6.0


def test_what_a_constructor_gives_is_not_marked_twice() -> None:
    code = convert(SOURCE).code
    assert "self.zero = jnp.zeros(n)" in code and "self.zero = h[0]" in code and "self.count = 0" in code
    assert "self.mean = nnx.data(h.mean())" in code and "self.inner.scale = nnx.data(x.max())" in code


def test_a_buffer_in_one_branch_and_a_tensor_in_the_other() -> None:
    code = convert(
        "import torch\nfrom torch import nn\n\n\nclass Mask(nn.Module):\n    def __init__(self, causal, n):\n"
        "        super().__init__()\n        if causal:\n"
        "            self.register_buffer('mask', torch.tril(torch.ones(n, n)))\n"
        "        else:\n            self.mask = torch.zeros(0)\n\n"
        "    def forward(self, x):\n        return x if self.mask.numel() == 0 else x @ self.mask\n"
    ).code
    names: dict[str, Any] = {}
    exec(code, names)
    x = jnp.arange(6.0).reshape(2, 3)
    assert (names["Mask"](False, 3, rngs=nnx.Rngs(0))(x) == x).all()
    masked = names["Mask"](True, 3, rngs=nnx.Rngs(0))
    assert (masked(x) == x @ jnp.tril(jnp.ones((3, 3)))).all() and isinstance(masked.mask, nnx.Variable)


@pytest.mark.parametrize(
    ("first", "then", "kept"),
    [
        ("nn.Identity()", "if n > 2:\n            self.act = nn.Linear(n, n)", "Identity()"),
        ("nn.ReLU()", "if n > 2:\n            self.act = nn.PReLU()", "ReLU()"),
        ("nn.ReLU()", "if n > 2:\n            self.act = nn.Tanh()", "nnx.relu"),
        ("nn.Identity() if n < 2 else nn.Linear(n, n)", "pass", "nnx.identity"),
    ],
)
def test_a_function_does_not_stand_where_a_module_comes_later(first: str, then: str, kept: str) -> None:
    code = convert(
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, n):\n"
        f"        super().__init__()\n        self.act = {first}\n        {then}\n\n"
        "    def forward(self, x):\n        return self.act(x)\n"
    ).code
    assert f"self.act = {kept}" in code
    names: dict[str, Any] = {}
    exec(code, names)
    for n in (1, 3):
        model = names["Net"](n, rngs=nnx.Rngs(0))
        assert nnx.jit(lambda model, x: model(x))(model, jnp.ones((2, n))).shape == (2, n)


@pytest.mark.parametrize("given", ["[0.4, 0.6]", "(1, 2)", "0.25", "None"])
def test_a_number_or_list_that_becomes_an_array_is_data_from_then_on(given: str) -> None:
    code = convert(
        "import torch\nfrom torch import nn\n\n\nclass Focal(nn.Module):\n    def __init__(self, alpha=None):\n"
        "        super().__init__()\n        self.alpha = alpha\n"
        "        if isinstance(alpha, (list, tuple)):\n            self.alpha = torch.Tensor(alpha)\n\n"
        "    def forward(self, x):\n        return x if self.alpha is None else x * self.alpha\n\n\n"
        f"focal = Focal({given})\n"
    ).code
    assert "            self.alpha = nnx.data(" in code and "        self.alpha = alpha\n" in code
